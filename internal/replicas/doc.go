// Package replicas manages pods that Muster owns itself. It computes the replicas of a job, the phase of each from its
// pod and from what the job's status records, which replicas restart, and which pods and Services to create or delete.
// Its main types are Group, Replica and Roster.
//
// A replica and its pod share one name, <job>-<group>-<index>, so the API server itself ensures that there are never
// two pods for an index. A pod's annotation holds how often its replica had been restarted when the pod was created; if
// the status counts more restarts, the pod is outdated. It is deleted, and the next pod is created once it is gone. So
// a restart is decided by a single write of the status, even if any later write fails. Restarts in a row are delayed; a
// replica whose restart is not due yet keeps its finished pod.
//
// The package is pure. Job APIs call it; it knows no job API and no queue.
package replicas
