package rendezvous

import (
	"context"
	"fmt"
	"net"
	"time"

	"golang.org/x/time/rate"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/certificate"
	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// certificateUse is the use of the certificate authority that agents trust.
var certificateUse = certificate.Use{Secret: "muster-rendezvous", Server: protocol.ServerName}

// Options configure where agents are served.
type Options struct {
	// Bind is the address to listen on, and Address the host:port at which pods reach it. Agents ignore the name in the
	// certificate that others expect.
	Bind, Address string
	// Namespace is the operator's own; the Secret with the certificate is there.
	Namespace string
	// Leads reports whether no other operator can lead by now. An operator that leads may find out late that it no
	// longer does.
	Leads func() bool
}

// AddTo adds the server to the manager, and returns the authority that agents must trust. Nobody can trust it before
// its Secret can be read, which is tried again and again.
func AddTo(ctx context.Context, mgr ctrl.Manager, o Options) (*certificate.Authority, error) {
	clientset, err := kubernetes.NewForConfig(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	log := ctrl.Log.WithName("rendezvous")
	authority, err := certificate.OpenAuthority(ctx, clientset.CoreV1().Secrets(o.Namespace), useFor(o.Address),
		clock.RealClock{}, log)
	if err != nil {
		log.Error(err, "no pods get agents until this is mended; trying again", "every", certificate.RenewInterval)
	}
	registry := newRegistry(mgr.GetClient())
	registry.holds.most = agentsWithin(MemoryLimit())
	server := &server{
		bind: o.Bind, authority: authority, registry: registry, leads: o.Leads, log: log,
		reports:  newReports(mgr.GetClient(), clock.RealClock{}, log),
		logged:   rate.Sometimes{Interval: 10 * time.Second},
		identify: byTokenReview(clientset.AuthenticationV1().TokenReviews(), clock.RealClock{}),
	}
	for _, kind := range []client.Object{&batchv1.Job{}, &breezeml.TrainingJob{}, &corev1.Pod{}, &jobset.JobSet{}} {
		if err := server.watch(ctx, mgr, kind, registry.handler()); err != nil {
			return nil, err
		}
	}
	if err := server.watch(ctx, mgr, &kueue.Workload{}, server.reports.handler()); err != nil {
		return nil, err
	}
	for _, part := range []manager.Runnable{authority, server, server.reports} {
		if err := mgr.Add(part); err != nil {
			return nil, err
		}
	}
	return authority, nil
}

// useFor returns the use of an authority for pods that reach the operator at this address.
func useFor(address string) certificate.Use {
	use := certificateUse
	if host, _, err := net.SplitHostPort(address); err == nil {
		use.Hosts = []string{host}
	}
	return use
}

// watch has the events of a kind handled. The server starts once those of all existing objects are.
func (s *server) watch(ctx context.Context, mgr ctrl.Manager, kind client.Object,
	handler cache.ResourceEventHandler) error {
	informer, err := mgr.GetCache().GetInformer(ctx, kind)
	if err != nil {
		return fmt.Errorf("watching %T: %w", kind, err)
	}
	watched, err := informer.AddEventHandler(handler)
	if err != nil {
		return fmt.Errorf("watching %T: %w", kind, err)
	}
	s.synced = append(s.synced, watched.HasSynced)
	return nil
}

// awaitSynced waits until the registry knows all existing pods; before that, members of a running round would be
// treated as unknown.
func (s *server) awaitSynced(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), s.synced...)
}
