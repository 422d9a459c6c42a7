// Package quota is the arithmetic of queues: a tree whose leaves are
// ClusterQueues and whose inner nodes are cohorts, with nominal quota, borrowing
// and lending limits at every node, and the usage charged to it.
//
// It answers how much a queue may still take of a flavor's resource, and how
// much it could ever take. It is called by the engine only and knows neither
// workloads nor time nor the API objects that the quotas came from.
package quota
