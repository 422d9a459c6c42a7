// Package machine is a node with a real kubelet, containerd and runc for the tests of a process, in namespaces of its own: mounts,
// network and processes end with the test process, however it ends. Cgroups alone, which have no such end, are removed by the
// process that stays outside.
//
// The test binary starts itself twice. Outside it looks whether this machine can do it, makes the namespaces and cleans up.
// As process 1 within them it prepares mounts and network, and buries processes. Below that the tests run.
package machine
