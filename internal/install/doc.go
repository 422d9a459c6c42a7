// Package install applies Muster's custom resource definitions and admission policies to a cluster and waits until
// the APIs are served. The operator calls it at startup when asked to, and so do tests. It writes only objects that
// differ from the live ones (live.go, apply.go), and knows nothing of what the APIs mean. It refuses to write over the
// definitions of another project, which foreign.go recognizes. It also finds out, from the definitions in the
// cluster, whether Volcano runs its Jobs itself, and ends the operator when that changes.
package install
