package command

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/musterhq/muster/cmd/muster/observe"
	"github.com/musterhq/muster/cmd/muster/show"
	"github.com/musterhq/muster/cmd/muster/view"
)

// jobsOptions are the flags of `muster jobs`.
type jobsOptions struct {
	config        *genericclioptions.ConfigFlags
	output        *outputFlags
	allNamespaces bool
	selector      string
	watch         bool
}

func newJobs(streams genericiooptions.IOStreams) *cobra.Command {
	o := &jobsOptions{config: genericclioptions.NewConfigFlags(true), output: newOutputFlags()}
	cmd := &cobra.Command{
		Use:     "jobs",
		Aliases: []string{"job"},
		Short:   "List jobs: which run, which wait, and why",
		Example: `  muster jobs -A            # of all namespaces
  muster jobs -n lab -w     # as they change
  muster jobs -o wide       # also where quota comes from, and all resources`,
		Args: noArguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), streams) },
	}
	addClusterFlags(cmd, o.config)
	o.output.addTo(cmd, ".waitSeconds")
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "List the jobs of all namespaces.")
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "",
		"List only jobs with these labels, written as for kubectl: key=value,key!=value.")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Follow changes, until Ctrl-C.")
	return cmd
}

func (j *jobsOptions) run(ctx context.Context, streams genericiooptions.IOStreams) error {
	selector, err := labels.Parse(j.selector)
	if err != nil {
		return usageError("read the selector %q: %w: write key=value", j.selector, err)
	}
	jobs := listing[view.Job]{
		what: "jobs", config: j.config, output: j.output, watch: j.watch,
		renderer: renderer[view.Job]{
			table:  func(jobs []view.Job) *metav1.Table { return show.JobTable(jobs, j.allNamespaces, time.Now()) },
			object: func(jobs []view.Job) runtime.Object { return view.NewJobList(jobs) },
			name:   (*view.Job).ResourceName,
		},
		scope: func() (observe.Scope, string, error) {
			if j.allNamespaces {
				return observe.Scope{Limits: true}, "", nil
			}
			namespace, _, err := namespaceOf(j.config)
			return observe.Scope{Namespace: namespace, Limits: true}, namespace, err
		},
		list: func(snapshot *view.Snapshot, _ string, now time.Time) []view.Job {
			return slices.DeleteFunc(view.Jobs(snapshot, now),
				func(job view.Job) bool { return !selector.Matches(labels.Set(job.Labels)) })
		},
		complete: noteWhy,
		changes:  show.JobChanges(),
	}
	return jobs.run(ctx, streams)
}

// noteWhy adds to the jobs what takes more requests than a list of each kind.
func noteWhy(ctx context.Context, cluster *observe.Cluster, namespace string, jobs []view.Job) error {
	if err := noteMistakes(ctx, cluster, namespace, jobs); err != nil {
		return err
	}
	unready := view.Unready(jobs)
	pods, err := cluster.PodsOfAll(ctx, namespace, unready)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, job := range unready {
		its := job.OwnPods(pods)
		claims, err := cluster.ClaimsOf(ctx, job.Namespace, its, claimsInList)
		if err != nil {
			return err
		}
		mounts, err := cluster.MountsOf(ctx, job.Namespace, its, mountsInList, now)
		if err != nil {
			return err
		}
		job.NoteProblem(its, claims, mounts, now)
	}
	return nil
}

// claimsInList and mountsInList bound, for each job of a list, how many claims of its pods are looked for, and of how
// many pods the events about volumes are read: requests of their own. Most jobs need none.
const (
	claimsInList = 2
	mountsInList = 1
)

// noteMistakes reports of each job without a Workload what its last warning event says: usually what is wrong with the
// job. It reads events only if there is a job without a Workload.
func noteMistakes(ctx context.Context, cluster *observe.Cluster, namespace string, jobs []view.Job) error {
	if !slices.ContainsFunc(jobs, func(job view.Job) bool { return job.SaysNothing() }) {
		return nil
	}
	warnings, err := cluster.WarningsIn(ctx, namespace)
	if err == nil {
		view.NoteMistakes(jobs, warnings)
	}
	return err
}
