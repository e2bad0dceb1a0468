"""The training room: the loop, the loss, schedules, averages of the weights, checkpoints and progress."""
