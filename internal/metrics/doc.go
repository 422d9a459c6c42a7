// Package metrics is how the operator's metrics are declared: each with its name, type, labels and help, so that
// docs/operate/metrics.md and the chart's dashboard can be checked against all of them. Each package declares its own
// metrics in package variables, and so before anything runs. This package knows nothing of what they count.
//
// Labels are queues, cohorts, flavors, resources, namespaces, kinds, and values of short lists; never jobs, whose
// number is unbounded.
package metrics
