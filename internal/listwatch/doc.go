// Package listwatch lists and watches objects for the cache of the operator, and of commands that follow a cluster,
// at a fraction of the cost of client-go. A starting operator reads every Workload and every pod, and later three
// changes for each Workload that it admits. The package knows nothing of the kinds beyond how they are decoded; the
// caller that makes the cache decides the rest.
//
// The initial state comes from a list that is decoded object by object: the list is never in memory as a whole, and
// the API server need not turn it into watch events.
//
// Built-in kinds come as protobuf. Custom resources come as JSON, and client-go scans each of their events some eight
// times: for the end of the event, for its type, for its validity, and again for the object within. This package
// scans it once or twice.
//
// A single object that does not fit its Go type would keep a reflector from reading any object of the kind, for as
// long as it exists. The object is skipped, and reported in the log and by a metric, except in API groups for
// which the caller disables that.
package listwatch
