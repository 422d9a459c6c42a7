// Package metrics is where the operator's metrics are declared: each by its name, type, labels and meaning, so that
// docs/metrics.md and the dashboard of the chart can be held against all of them. The packages whose numbers they are
// declare them in variables, and so before anything runs. It knows nothing of what is counted.
//
// Labels name queues, cohorts, flavors, resources, namespaces and kinds, and what is chosen from a short list: never a job, of
// which there are as many as people like.
package metrics
