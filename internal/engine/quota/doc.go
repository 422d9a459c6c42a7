// Package quota does the arithmetic of quotas. A Tree has ClusterQueues as leaves and cohorts as inner nodes; each
// Node has nominal quota with borrowing and lending limits, and the usage charged to it.
//
// It answers how much of a flavor's resource a queue can still take, and how much it could take at most. Only the
// engine and its sub-packages call it. It must not know workloads, time, or the API objects that the quotas come
// from.
package quota
