// Package placer assigns gated pods to the places of their Workload: the pods of jobs whose template cannot name a node
// for each pod. From the admission of the Workload it takes the places, from the pods which of these are in use, and
// then binds each waiting pod with a single patch that adds the node selector and removes the scheduling gate. Pods
// that are somewhere without a place, since a repair gave their Workload other places, are deleted, never by force.
//
// The assignment is a function of the observed pods. These are read from the cache or, if the cache may lack earlier
// assignments, from the API server: until the first write was answered, since another operator may have assigned places
// shortly before, and while the answer to a write is missing. The API server accepts the patch only while the gate is
// present, so no pod is assigned twice.
package placer
