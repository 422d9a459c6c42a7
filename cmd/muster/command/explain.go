package command

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/musterhq/muster/api/config/v1alpha1"
	"github.com/musterhq/muster/cmd/muster/observe"
	"github.com/musterhq/muster/cmd/muster/show"
	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/internal/config"
)

// explainOptions are the flags of `muster explain`.
type explainOptions struct {
	config *genericclioptions.ConfigFlags
	kube   *genericclioptions.PrintFlags
	// operatorConfig is the path of the operator's configuration file.
	operatorConfig string
}

func newExplain(streams genericiooptions.IOStreams) *cobra.Command {
	o := &explainOptions{config: genericclioptions.NewConfigFlags(true), kube: genericclioptions.NewPrintFlags("")}
	cmd := &cobra.Command{
		Use:   "explain [[namespace/]kind/]name | explain kind name",
		Short: "Explain why a job waits, or how it runs",
		Long: `Explain why one job waits, or how it runs: what it requests, its position in the queue, what each flavor of the queue
lacks for it, which jobs hold that and whether they may be preempted, after the end of which jobs it would fit, and the
problems of its pods.

It reads with your rights what the operator decides from, and runs the operator's engine on it under the configuration
that the operator publishes. If you may not list all of it, it names what is missing and shows what the operator wrote
last.

The exit code is 0 if the job runs, may run or has completed, and 1 if it does not.`,
		Example: `  muster explain pytorch
  muster explain jobset/sweep-d -n lab
  muster explain workload jobset-sweep-d-1a2b3 -n lab
  muster explain lab/jobset/sweep-d -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 && (len(args) != 2 || strings.Contains(args[0]+args[1], "/")) {
				return usageError("name one job: `%s jobset/NAME`; `muster jobs` lists them", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), streams, strings.Join(args, "/"))
		},
	}
	cmd.ValidArgsFunction = o.complete
	addClusterFlags(cmd, o.config)
	o.kube.AddFlags(cmd)
	cmd.Flags().StringVar(&o.operatorConfig, "operator-config", "",
		"Use this configuration file, not the configuration that the operator publishes.")
	cmd.Flag("output").Usage = "Output format. One of: (json, yaml, jsonpath=…, go-template=…)."
	return cmd
}

func (eo *explainOptions) run(ctx context.Context, streams genericiooptions.IOStreams, argument string) error {
	name, err := view.ParseName(argument)
	if err != nil {
		return usageError("%w", err)
	}
	if name.Namespace != "" && *eo.config.Namespace != "" && name.Namespace != *eo.config.Namespace {
		return usageError("%q is in another namespace than -n %s: leave one of them out", argument, *eo.config.Namespace)
	}
	write, err := eo.printer(streams.Out)
	if err != nil {
		return err
	}
	var given *v1alpha1.Configuration
	if eo.operatorConfig != "" {
		if given, err = config.Load(eo.operatorConfig); err != nil {
			return usageError("%w", err)
		}
	}
	cluster, err := connect(ctx, eo.config)
	if err != nil {
		return err
	}
	if name.Namespace == "" {
		if name.Namespace, _, err = namespaceOf(eo.config); err != nil {
			return err
		}
	}

	snapshot, err := read(ctx, cluster, name)
	if err != nil {
		return explainConnection(err)
	}
	reportUnreadable(lineTo(streams.ErrOut),
		slices.DeleteFunc(snapshot.Unreadable, func(job view.Unreadable) bool { return job.Namespace != name.Namespace }))
	if given != nil {
		snapshot.Configuration, snapshot.Assumed = given, ""
	}
	explanation, err := explain(ctx, cluster, snapshot, name, argument, streams)
	if err != nil {
		return err
	}
	if err := write(explanation); err != nil {
		return err
	}
	if !isHealthy(explanation.Job.State) {
		return errQuiet
	}
	return nil
}

// read reads what explains the named job: all that decisions depend on, or much less if it is a job that does not wait.
func read(ctx context.Context, cluster *observe.Cluster, name view.Name) (*view.Snapshot, error) {
	if name.Kind != "workload" {
		snapshot, err := cluster.SnapshotNamed(ctx, name.Namespace, name.Name)
		if err != nil || view.ExplainsItself(snapshot, name, time.Now()) {
			return snapshot, err
		}
	}
	return cluster.SnapshotAll(ctx, name.Namespace)
}

// printer returns a function that prints an explanation in the selected output format, or as text if there is none.
func (eo *explainOptions) printer(out io.Writer) (func(*view.Explanation) error, error) {
	switch {
	case *eo.kube.OutputFormat == "name":
		return nil, usageError("explain has no output format name: use json or yaml")
	case *eo.kube.OutputFormat == "" && *eo.kube.TemplatePrinterFlags.TemplateArgument == "":
		return func(e *view.Explanation) error { return show.Explanation(out, e) }, nil
	}
	printObject, err := printerFor(eo.kube, out)
	if err != nil {
		return nil, usageError("%w", err)
	}
	return func(e *view.Explanation) error { return printObject(e) }, nil
}

// explain finds the named job, reads its pods and warning events, and explains it.
func explain(ctx context.Context, cluster *observe.Cluster, snapshot *view.Snapshot, name view.Name, argument string,
	streams genericiooptions.IOStreams) (*view.Explanation, error) {
	now := time.Now()
	jobs := view.Jobs(snapshot, now)
	found := view.Find(jobs, name)
	if len(found) == 0 {
		for _, owner := range view.FindOwner(snapshot, name) {
			found = append(found, view.Find(jobs, owner)...)
		}
	}
	if schedule := view.FindSchedule(snapshot, name); len(found) == 0 && schedule != nil {
		return nil, scheduleError(schedule)
	}
	if kinds := view.KindWords(jobs); len(found) == 0 && name.Kind != "" && !slices.Contains(kinds, name.Kind) {
		return nil, notFound("%q is not a kind of job: write one of %s; `muster jobs -n %s` lists the jobs", name.Kind,
			strings.Join(kinds, ", "), name.Namespace)
	}
	job, err := choose(found, argument, name.Namespace, streams)
	if err != nil {
		return nil, err
	}
	if snapshot.Pods, err = cluster.PodsOf(ctx, job); err != nil {
		return nil, explainConnection(err)
	}
	if snapshot.Claims, err = cluster.ClaimsOf(ctx, job.Namespace, snapshot.Pods, 20); err != nil {
		return nil, explainConnection(err)
	}
	if snapshot.Mounts, err = cluster.MountsOf(ctx, job.Namespace, snapshot.Pods, 5, now); err != nil {
		return nil, explainConnection(err)
	}
	if snapshot.NeedsWarnings(job) {
		if snapshot.Warnings, err = cluster.WarningsOf(ctx, job); err != nil {
			return nil, explainConnection(err)
		}
	}
	return view.Explain(snapshot, jobs, *job, now), nil
}

// scheduleError is the error for a scheduled LatticeJob, which is not queued itself: it points to its runs.
func scheduleError(s *view.Schedule) error {
	title := fmt.Sprintf("%s/latticejob/%s runs by its schedule %q", s.Namespace, s.Name, s.Times)
	if s.Message != "" {
		title += " (" + s.Message + ")"
	}
	if len(s.Runs) == 0 {
		return notFound("%s, and waits for nothing itself; it has no run yet: see `muster kubectl describe -n %s latticejob/%s`",
			title, s.Namespace, s.Name)
	}
	return notFound("%s, and waits for nothing itself: ask for one of its runs, `muster explain -n %s latticejob/%s` for the last",
		title, s.Namespace, s.Runs[0])
}

// choose returns the one job that was found. If there are several, it asks the user which, provided that input and
// error output are terminals.
func choose(found []view.Job, argument, namespace string, streams genericiooptions.IOStreams) (*view.Job, error) {
	switch len(found) {
	case 0:
		return nil, notFound("no job %q in namespace %s: see `muster jobs -n %s`, or name another namespace with -n or as namespace/kind/name",
			argument, namespace, namespace)
	case 1:
		return &found[0], nil
	}
	titles := make([]string, 0, len(found))
	for i := range found {
		titles = append(titles, found[i].Title())
	}
	input, isFile := streams.In.(*os.File)
	_, inTerminal := show.Terminal(input)
	_, errTerminal := show.Terminal(streams.ErrOut)
	if !isFile || !inTerminal || !errTerminal {
		return nil, usageError("%q names %d jobs: write one of %s", argument, len(found), strings.Join(titles, ", "))
	}
	for i, title := range titles {
		_, _ = fmt.Fprintf(streams.ErrOut, "%d  %s\n", i+1, title)
	}
	_, _ = fmt.Fprintf(streams.ErrOut, "which of them (1-%d)? ", len(found))
	answer, _ := bufio.NewReader(input).ReadString('\n')
	number, err := strconv.Atoi(strings.TrimSpace(answer))
	if err != nil || number < 1 || number > len(found) {
		return nil, usageError("%q is not one of them: write one of %s", strings.TrimSpace(answer),
			strings.Join(titles, ", "))
	}
	return &found[number-1], nil
}

// isHealthy reports whether `muster explain` exits with 0 for a job in this state.
func isHealthy(state view.State) bool {
	switch state {
	case view.Running, view.Starting, view.Admitted, view.Completed:
		return true
	}
	return false
}
