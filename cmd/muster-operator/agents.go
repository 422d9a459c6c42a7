package main

import (
	"bytes"
	"context"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/rendezvous"
)

// agent starts the rendezvous for agents and returns a function that describes the agent that jobs add to their pods.
// If the rendezvous cannot be started, the description is empty, and without certificates while there are none: jobs
// that need an agent report it, and others run without. leads reports whether no other operator can lead by now.
func agent(ctx context.Context, mgr manager.Manager, leads func() bool, o options) func() podspec.Agent {
	none := func() podspec.Agent { return podspec.Agent{} }
	if o.rendezvousAddress == "" {
		return none
	}
	authority, err := rendezvous.AddTo(ctx, mgr,
		rendezvous.Options{Bind: o.rendezvousBind, Address: o.rendezvousAddress, Namespace: ownNamespace(o), Leads: leads})
	if err != nil {
		ctrl.Log.WithName("rendezvous").Error(err, "agents are not served; the next start tries again")
		return none
	}
	return func() podspec.Agent {
		return podspec.Agent{Image: o.agentImage, Server: o.rendezvousAddress, CA: authority.Trusted()}
	}
}

// ownNamespace returns the namespace in which the operator keeps its own objects.
func ownNamespace(o options) string {
	if o.leaderElectionNamespace != "" {
		return o.leaderElectionNamespace
	}
	if text, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace"); err == nil {
		return string(bytes.TrimSpace(text))
	}
	return "kube-system"
}
