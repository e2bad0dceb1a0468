"""The comparison room: results of several runs -> which differences are more than noise, and a report."""
