// Package install puts Muster's custom resource definitions and admission policies into a cluster and waits until the
// APIs are served. The operator calls it at start when it is asked to, and so do tests. It writes only what differs from
// what is there, and knows nothing of what the APIs mean. Whose Volcano's Jobs are it reads off their definitions, and it ends
// the operator when that changes.
package install
