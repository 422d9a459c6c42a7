// Package machine runs a node with a real kubelet, containerd and runc for the tests of a process, in namespaces of its
// own: mounts, network and processes disappear with the test process, however it ends. Only cgroups do not; the process
// that stays outside the namespaces removes them.
//
// The test binary starts itself twice. Outside, it checks whether this machine is suitable, creates the namespaces, and
// cleans up. As process 1 inside, it prepares mounts and network, and reaps processes. Its child runs the tests.
package machine
