// Package podvolume makes the volumes of pods as directories of this machine, with the kubelet's own volume plugins:
// emptyDir, configMap, secret, downwardAPI, projected and hostPath, and claims whose bound volume is a path of a
// machine. Nothing is mounted on the machine: package process binds the directories into containers.
//
// It may be used by package execnode alone. It knows pods and their volumes, and must never know containers or
// processes.
package podvolume
