// Package testcluster provides tests with a real Kubernetes control plane: one bin/muster-local per test process,
// started when the first test asks for it and stopped after the last one, or when the process dies. Only tests may
// import it. It knows how to start a cluster and install Muster's APIs, and nothing of what is tested.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{}) }
//
// and calls Get in its tests. They share the cluster: each test creates a namespace with Namespace, and uses unique
// names for cluster-scoped objects.
package testcluster
