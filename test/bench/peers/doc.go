// Package peers plays the same gangs with Muster and with Volcano, each on a local control plane of its own with 200
// simulated nodes of 8 GPUs, and compares how long they take. Volcano is not part of this project: its test needs the
// build tag peers and a folder with Volcano's source, as `make test-peers` says.
package peers
