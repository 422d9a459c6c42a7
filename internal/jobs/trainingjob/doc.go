// Package trainingjob implements the TrainingJob API (breezeml.ai/v1): what a TrainingJob asks of a queue, between
// which sizes, and which pods, Services and status follow from the size that it is granted and from the state of its
// pods. Each policy has a file of its own.
//
// All are pure functions, which the shared reconciler of package jobs calls through API. The executor of that package
// does the planned writes. Pods are named, built and judged by package replicas.
package trainingjob
