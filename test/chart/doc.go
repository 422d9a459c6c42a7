// Package chart tests the Helm chart: Helm lints, renders, installs, upgrades and uninstalls it on the embedded control
// plane, whose API server validates each object. The Deployment's pods do not run there; tests that need the operator
// start it as a process, with the chart's flags, service account and rights.
//
// It is a module of its own, because Helm has many dependencies that nothing else needs.
package chart
