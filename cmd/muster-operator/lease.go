package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// leaseName is the name of the lease that the leader holds.
const leaseName = "muster.dev"

const (
	// defaultLease is short enough for another operator to lead within five seconds of the leader's death; see termOf.
	// Lease renewals are few small requests, to which the chart's FlowSchema gives priority.
	defaultLease = 3 * time.Second

	// shutdownTimeout is how long runnables may take to stop; then the lease is released all the same. It is well
	// below a pod's termination grace period.
	shutdownTimeout = 5 * time.Second
)

// term has the timing of leader election.
type term struct {
	// lease is how long other candidates wait after the last renewal that they observed before they take over.
	lease time.Duration
	// renew is how long after its last renewal the leader may write, which must end before others take over.
	renew time.Duration
	// patience is how long the leader tries to renew its lease before it exits. An API server that is overloaded or
	// restarts lets no other operator lead either, and an operator that exited would burden it with its initial lists.
	patience time.Duration
	// retry is the interval at which the leader renews and others check the lease. With client-go's jitter it is up to
	// 2.2 times as long, so a dead leader is replaced after at most lease + 4.4 retry.
	retry time.Duration
}

// termOf returns the timing for a lease duration, which must be in whole seconds as in the Lease API.
func termOf(lease time.Duration) (term, error) {
	if lease < time.Second || lease%time.Second != 0 {
		return term{}, fmt.Errorf("--leader-election-lease is %s, and must be whole seconds, at least one", lease)
	}
	return term{lease: lease, renew: lease * 2 / 3, patience: lease * 20, retry: lease / 10}, nil
}

// lock is the lease as leader election sees it. client-go demands that a lease is longer than the patience of its
// holder, because it assumes that this one goes on writing. Ours does not (see fence), so that others need not wait for
// it: they see a lease of the term's duration.
type lock struct {
	resourcelock.Interface
	lease time.Duration
	// lost is called if another operator has led since this one did, so that this one must not go on.
	lost func(why error)
	led  bool
	// deposed is why it was lost. It is not taken again while this operator ends.
	deposed error
}

// newLock returns the lock of an operator in the namespace, which reports through events.
func newLock(cluster *rest.Config, namespace string, t term, events *leaderEvents,
	lost func(why error)) (*lock, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("finding a name for leader election: %w", err)
	}
	identity := resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID()), EventRecorder: events}
	lease, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, leaseName, identity,
		cluster, t.renew)
	if err != nil {
		return nil, fmt.Errorf("preparing leader election: %w", err)
	}
	return &lock{Interface: lease, lease: t.lease, lost: lost}, nil
}

func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && l.led && record.HolderIdentity != l.Identity() {
		l.deposed = fmt.Errorf("another operator has taken the lease %s (now held by %q), which this one did not renew in time: it ends, to be started again as one that does not lead",
			l.Describe(), record.HolderIdentity)
		l.lost(l.deposed)
	}
	return record, raw, err
}

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

func (l *lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord,
	write func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	if l.deposed != nil {
		return l.deposed
	}
	holds := record.HolderIdentity == l.Identity() // else it is released
	if holds {
		record.LeaseDurationSeconds = int(l.lease / time.Second)
	}
	err := write(ctx, record)
	l.led = l.led || holds && err == nil
	return err
}

// leaderEvents records the events of leader election. The manager, which needs the lock, is set later.
type leaderEvents struct{ manager.Manager }

func (l *leaderEvents) Eventf(object runtime.Object, kind, reason, message string, args ...any) {
	l.GetEventRecorder("leader-election").Eventf(object, nil, kind, reason, "Elect", message, args...)
}
