// Package workload has the changes of a Workload's status that several packages make: eviction, release of quota, and
// backoff. Each function makes a complete change, so that the conditions agree whichever package makes it. It also
// tells which namespaces a ClusterQueue accepts.
//
// Everything here is a pure function of objects: no client, no clock. Admission, jobs and the command line import it;
// it imports nothing of internal/.
package workload
