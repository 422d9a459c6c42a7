// Package trainingjob implements the TrainingJob API (breezeml.ai/v1): what a TrainingJob asks of a queue, between
// which sizes, and which pods, Services and status follow from the size that it is granted and from the state of its
// pods. Each policy has a file of its own.
//
// All functions are pure: the reconciler of package controller calls them, and the executor of package write carries
// out what they plan. Pods are named, built and judged by package replicas.
package trainingjob
