package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/musterhq/muster/cmd/muster/localcluster"
	"github.com/musterhq/muster/cmd/muster/observe"
	"github.com/musterhq/muster/cmd/muster/view"
)

// Options configure the demo.
type Options struct {
	// Binary is the path of muster-local.
	Binary string
	// Examples holds <folder>/<file>.yaml.
	Examples fs.FS
	// Keep keeps the cluster running after the end, until ctx is done.
	Keep bool
	// Timeout bounds the whole demo, apart from Keep.
	Timeout time.Duration
	Out     io.Writer
}

// clusterFlags are the flags of the cluster that the examples are written for.
var clusterFlags = []string{"--ephemeral", "--nodes", "1", "--sim-nodes", "16", "--sim-gpus", "8", "--sim-gpu-product",
	"NVIDIA-A100-SXM4-80GB"}

// reconcileTimeout is how long the demo waits for the operator to reconcile the jobs of one file before it applies the
// next.
const reconcileTimeout = 5 * time.Second

// Run plays the demo. It returns an error if a job ends in an unexpected state or is overtaken by one of lower
// priority, on timeout, if the cluster stops, or if ctx ends before the jobs do. It always stops the cluster before it
// returns.
func Run(ctx context.Context, o Options) (err error) {
	manifests, err := readManifests(o.Examples)
	if err != nil {
		return err
	}
	begin := time.Now()
	console := newConsole(o.Out, begin)
	console.say("starting a cluster: muster up %s", strings.Join(clusterFlags, " "))
	child, err := localcluster.Start(o.Binary, clusterFlags, func(line string) { console.say("  %s", line) })
	if err != nil {
		return err
	}
	defer func() {
		console.say("stopping the cluster")
		err = errors.Join(err, child.Stop())
	}()

	playing, finish := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("not done after %s", o.Timeout))
	defer finish()
	playing, giveUp := context.WithCancelCause(playing)
	defer giveUp(nil)
	go func() {
		select {
		case <-child.Exited():
			giveUp(child.ExitError())
		case <-playing.Done():
		}
	}()

	kubeconfig, err := child.Ready(playing)
	if err != nil {
		return reasonOf(playing, err)
	}
	s, err := newStage(playing, kubeconfig, console)
	if err != nil {
		return reasonOf(playing, err)
	}
	if err := s.play(playing, manifests); err != nil {
		return reasonOf(playing, err)
	}
	if o.Keep {
		console.say("the cluster stays up until Ctrl-C: export KUBECONFIG=%s", kubeconfig)
		select {
		case <-ctx.Done():
		case <-child.Exited():
			return child.ExitError()
		}
	}
	return nil
}

// reasonOf returns the cause for which the demo was cancelled, rather than the error that the cancellation led to.
func reasonOf(playing context.Context, err error) error {
	switch cause := context.Cause(playing); {
	case cause == nil:
		return err
	case errors.Is(cause, context.Canceled):
		return errors.New("interrupted before all jobs were done")
	case errors.Is(err, cause):
		return err
	default:
		return cause
	}
}

// stage is the running cluster with its clients.
type stage struct {
	config   *rest.Config
	cluster  *observe.Cluster
	watch    *observe.Watch
	applier  *applier
	console  *console
	expected []expectation
}

func newStage(ctx context.Context, kubeconfig string, console *console) (*stage, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = 100, 200
	cluster, err := observe.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	watch, err := cluster.Watch(ctx, observe.Scope{ClusterQueues: true})
	if err != nil {
		return nil, err
	}
	applier, err := newApplier(config)
	if err != nil {
		return nil, err
	}
	return &stage{config: config, cluster: cluster, watch: watch, applier: applier, console: console}, nil
}

// play applies the manifests, follows the jobs until they end, and prints the result.
func (s *stage) play(ctx context.Context, manifests []manifest) error {
	for i := range manifests {
		if err := s.apply(ctx, &manifests[i]); err != nil {
			return err
		}
		// Wait until the operator has reconciled these jobs, so that jobs queue in the order in which they are applied.
		last, err := s.follow(ctx, reconcileTimeout, func(now standing) bool { return now.answered })
		if err != nil {
			return err
		}
		if !last.answered {
			s.console.say("the operator has not answered to all of this in %s; going on", reconcileTimeout)
		}
	}
	last, err := s.follow(ctx, 0, func(now standing) bool { return len(now.open) == 0 })
	s.console.endPicture()
	if len(last.jobs) > 0 {
		s.console.say("\n%s", summary(last.jobs))
	}
	if err != nil {
		s.explainOpen(last)
		return unfinished(err, last)
	}
	s.showLog(ctx, last.jobs)
	if len(last.wrong) > 0 {
		return fmt.Errorf("%d of %d jobs ended wrong: %s", len(last.wrong), len(s.expected), strings.Join(last.wrong, "; "))
	}
	if wrong := overtaken(last.jobs); len(wrong) > 0 {
		return fmt.Errorf("jobs were not served in the order of their priority: %s", strings.Join(wrong, "; "))
	}
	s.console.say("\nall %d jobs ended as expected, %s after the start", len(s.expected),
		time.Since(s.console.begin).Round(time.Second))
	return nil
}

func unfinished(err error, last standing) error {
	if len(last.open) == 0 {
		return err
	}
	return fmt.Errorf("%w: still open: %s", err, strings.Join(last.open, ", "))
}

func (s *stage) apply(ctx context.Context, m *manifest) error {
	var names []string
	for _, object := range m.objects {
		applied, err := s.applier.apply(ctx, object)
		if err != nil {
			return fmt.Errorf("apply %s of %s: %w", strings.ToLower(object.GetKind())+"/"+object.GetName(), m.path, err)
		}
		names = append(names, strings.ToLower(applied.GetKind())+"/"+applied.GetName())
		if expectation, isJob := expect(applied); isJob && !m.prerequisite {
			s.expected = append(s.expected, expectation)
		}
	}
	s.console.say("applied %s: %s", m.path, strings.Join(names, " "))
	return nil
}

// follow shows progress until wanted accepts the standing of the jobs, which is computed again after each change. If
// atMost is not 0, it also returns, without error, after that time. It always returns the last standing.
func (s *stage) follow(ctx context.Context, atMost time.Duration,
	wanted func(standing) bool) (last standing, err error) {
	var enough <-chan time.Time
	if atMost > 0 {
		timer := time.NewTimer(atMost)
		defer timer.Stop()
		enough = timer.C
	}
	var tick <-chan time.Time
	if s.console.redraws() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		snapshot, err := s.watch.Snapshot(ctx)
		if err != nil {
			return last, err
		}
		now := time.Now()
		jobs := view.Jobs(snapshot, now)
		if err := s.console.picture(view.Queues(snapshot, "", now), jobs, now); err != nil {
			return last, err
		}
		last = judge(s.expected, jobs)
		if wanted(last) {
			return last, nil
		}
		select {
		case <-ctx.Done():
			return judge(s.expected, view.Jobs(snapshot, time.Now())), context.Cause(ctx)
		case <-enough:
			return last, nil
		case <-s.watch.Changes():
		case <-tick:
		}
	}
}
