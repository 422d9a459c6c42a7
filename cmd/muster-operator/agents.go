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

// agent has agents served, and says what jobs put round their pods' commands by then. Where that
// cannot be, jobs that want an agent say so; all others do without.
func agent(ctx context.Context, mgr manager.Manager, o options) func() podspec.Agent {
	none := func() podspec.Agent { return podspec.Agent{} }
	if o.rendezvousAddress == "" {
		return none
	}
	authority, err := rendezvous.AddTo(ctx, mgr, rendezvous.Options{Bind: o.rendezvousBind, Namespace: ownNamespace(o)})
	if err != nil {
		ctrl.Log.WithName("rendezvous").Error(err, "no agents are served; the next start tries again")
		return none
	}
	return func() podspec.Agent {
		return podspec.Agent{Image: o.agentImage, Server: o.rendezvousAddress, CA: authority.Trusted()}
	}
}

// ownNamespace is where the operator keeps what it needs for itself.
func ownNamespace(o options) string {
	if o.leaderElectionNamespace != "" {
		return o.leaderElectionNamespace
	}
	if text, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace"); err == nil {
		return string(bytes.TrimSpace(text))
	}
	return "kube-system"
}
