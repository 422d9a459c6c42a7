// Package testcluster gives tests a real Kubernetes control plane: one bin/muster-local a test process, started when the
// first test asks for it and stopped when the last one is done, or when the process dies. Only tests may import it. It
// knows how to start a cluster and to put Muster's APIs into it, and nothing of what is tested.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{}) }
//
// and calls Get in its tests. All of them share the cluster: each takes a namespace of its own from Namespace, and names
// of its own for what has no namespace.
package testcluster
