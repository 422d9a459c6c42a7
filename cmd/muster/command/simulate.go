package command

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/musterhq/muster/cmd/muster/show"
	"github.com/musterhq/muster/cmd/muster/simulate"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/sim"
)

// simulateOptions are the flags of `muster simulate`.
type simulateOptions struct {
	trace, queues, csv, nodes, output, resource, operatorConfig string
	perPod                                                      int32
	rigid, withoutLimits                                        bool
}

func newSimulate(streams genericiooptions.IOStreams) *cobra.Command {
	o := &simulateOptions{}
	cmd := &cobra.Command{
		Use:   "simulate --trace FILE --queues FILE",
		Short: "Play a log of jobs on queues and nodes, and print how long jobs would wait",
		Long: `Play a log of jobs on the queues and nodes of a file, on a virtual clock, with the engine that decides in production,
and print how long jobs would wait in each ClusterQueue. It needs no cluster, and changes none.

The log is in the Standard Workload Format (SWF), or a list of jobs in JSON whose speed was measured at every size; both
may be compressed by gzip. The file of queues has manifests: ClusterQueues, LocalQueues, ResourceFlavors, and Cohorts,
Topologies and Nodes where there are any. What kubectl prints with -o yaml will do. - reads the standard input.`,
		Example: `  muster simulate --trace cluster.swf.gz --queues queues.yaml
  muster simulate --trace cluster.swf.gz --queues queues.yaml --nodes +16 --csv jobs.csv
  kubectl get clusterqueues,localqueues,cohorts,resourceflavors,topologies,nodes,namespaces -A -o yaml |
    muster simulate --trace cluster.swf --queues -`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), streams) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.trace, "trace", "", "The log of jobs.")
	flags.StringVar(&o.queues, "queues", "", "The manifests of queues and nodes.")
	flags.StringVar(&o.nodes, "nodes", "+0", "Add as many copies of the last node, and its resources to the quota; "+
		"without nodes, as many units of --resource to the quota.")
	flags.StringVar(&o.csv, "csv", "", "Write a line for each job to this file, ready to plot.")
	flags.StringVarP(&o.output, "output", "o", "", "Output format: json, or a table.")
	flags.StringVar(&o.resource, "resource", sim.GPU, "The resource that a processor of the log is.")
	flags.Int32Var(&o.perPod, "per-pod", 1, "At most so many processors of a job in one pod.")
	flags.BoolVar(&o.rigid, "rigid", false, "Run jobs of a list in JSON at the size that their users chose.")
	flags.BoolVar(&o.withoutLimits, "without-limits", false, "Forget the times that users requested.")
	flags.StringVar(&o.operatorConfig, "operator-config", "", "Decide under this configuration of the operator.")
	return cmd
}

// addedNodes matches the values of --nodes.
var addedNodes = regexp.MustCompile(`^\+?[0-9]{1,6}$`)

// mostPerPod bounds --per-pod.
const mostPerPod = 1024

// check returns what is wrong with the flags.
func (so *simulateOptions) check() error {
	switch {
	case so.trace == "":
		return usageError("give a log of jobs with --trace FILE: see `muster simulate --help`")
	case so.queues == "":
		return usageError("give the manifests of queues with --queues FILE: see `muster simulate --help`")
	case so.trace == "-" && so.queues == "-":
		return usageError("only one of --trace and --queues can be the standard input")
	case so.output != "" && so.output != "json":
		return usageError("unknown output format %q: -o json, or none for a table", so.output)
	case !addedNodes.MatchString(so.nodes):
		return usageError("--nodes %q is no number of nodes to add from 0 to 100000: write +16", so.nodes)
	case so.csv == "-":
		return usageError("--csv writes a file: give its name")
	case so.perPod < 1 || so.perPod > mostPerPod:
		return usageError("--per-pod must be from 1 to %d", mostPerPod)
	}
	return nil
}

func (so *simulateOptions) run(ctx context.Context, streams genericiooptions.IOStreams) error {
	if err := so.check(); err != nil {
		return err
	}
	o := simulate.Options{Configuration: config.Default(), Resource: corev1.ResourceName(so.resource), PerPod: so.perPod,
		WithoutLimits: so.withoutLimits}
	if so.operatorConfig != "" {
		configured, err := config.Load(so.operatorConfig)
		if err != nil {
			return usageError("%w", err)
		}
		o.Configuration = configured
	}
	setup, jobs, err := so.read(streams, o.Resource)
	if err != nil {
		return err
	}
	outcome, err := simulate.Run(ctx, setup, jobs, o)
	if err != nil {
		return err
	}
	if so.csv != "" {
		if err := writeFile(so.csv, outcome); err != nil {
			return err
		}
	}
	if so.output == "json" {
		return outcome.JSON(show.JSON(streams.Out))
	}
	return outcome.Table(streams.Out)
}

// read reads the setup and the jobs.
func (so *simulateOptions) read(streams genericiooptions.IOStreams,
	name corev1.ResourceName) (*simulate.Setup, []sim.Job, error) {
	manifests, err := openInput(streams, so.queues)
	if err != nil {
		return nil, nil, err
	}
	defer manifests.Close()
	setup, err := simulate.ReadSetup(manifests, func(note string) { _, _ = fmt.Fprintln(streams.ErrOut, note) })
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", so.queues, err)
	}
	more, _ := strconv.Atoi(so.nodes) // checked before
	if err := setup.Grow(more, name); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", so.queues, err)
	}
	log, err := openInput(streams, so.trace)
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	jobs, err := simulate.ReadTrace(log, so.rigid)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", so.trace, err)
	}
	return setup, jobs, nil
}

// writeFile writes the jobs of the outcome to a file.
func writeFile(path string, outcome *simulate.Outcome) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := outcome.CSV(file); err != nil {
		_ = file.Close()
		return fmt.Errorf("write %s: %w", path, err)
	}
	return file.Close()
}
