// Package chart has the tests of the Helm chart: Helm itself lints, renders, installs and uninstalls it on the embedded
// control plane, whose API server says of each object whether it would take it. The Deployment's pods do not run there.
//
// It is a module of its own, since Helm brings much that nothing else needs.
package chart
