// Package podvolume creates the volumes of pods as directories of this machine, with the kubelet's own volume plugins:
// emptyDir, configMap, secret, downwardAPI, projected and hostPath, and claims that are bound to a path of a machine.
// Nothing is mounted on the machine: package process binds the directories into containers.
//
// Only package execnode uses it. It knows pods and their volumes, and nothing of containers or processes.
package podvolume
