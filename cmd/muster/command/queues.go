package command

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/musterhq/muster/cmd/muster/observe"
	"github.com/musterhq/muster/cmd/muster/show"
	"github.com/musterhq/muster/cmd/muster/view"
)

// queuesOptions are the flags of `muster queues`.
type queuesOptions struct {
	config        *genericclioptions.ConfigFlags
	output        *outputFlags
	allNamespaces bool
	watch         bool
}

func newQueues(streams genericiooptions.IOStreams) *cobra.Command {
	o := &queuesOptions{config: genericclioptions.NewConfigFlags(true), output: newOutputFlags()}
	cmd := &cobra.Command{
		Use:     "queues",
		Aliases: []string{"queue"},
		Short:   "List queues: quota, usage, and what the next job waits for",
		Long: `List the ClusterQueues, a line for each resource of each flavor. With -n, only those to which a LocalQueue of that
namespace points.`,
		Example: `  muster queues
  muster queues -n lab -w`,
		Args: noArguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), streams) },
	}
	addClusterFlags(cmd, o.config)
	o.output.addTo(cmd, ".pending")
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false,
		"List all ClusterQueues, which is the default without -n.")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Follow changes, until Ctrl-C.")
	return cmd
}

func (q *queuesOptions) run(ctx context.Context, streams genericiooptions.IOStreams) error {
	queues := listing[view.Queue]{
		what: "queues", forbidden: "queues are summed from ClusterQueues and the Workloads of all namespaces: ask for permission, or list the jobs of a namespace of yours with `muster jobs -n NAMESPACE`",
		config: q.config, output: q.output, watch: q.watch,
		renderer: renderer[view.Queue]{
			table:  show.QueueTable,
			object: func(queues []view.Queue) runtime.Object { return view.NewQueueList(queues) },
			name:   func(queue *view.Queue) string { return "clusterqueue.kueue.x-k8s.io/" + queue.Name },
		},
		// The head of a queue may be a job of any namespace, so all namespaces are read even if only one is shown.
		scope: func() (observe.Scope, string, error) {
			if q.allNamespaces {
				return observe.Scope{ClusterQueues: true}, "", nil
			}
			return observe.Scope{ClusterQueues: true}, *q.config.Namespace, nil
		},
		list: view.Queues, changes: show.QueueChanges(),
	}
	return queues.run(ctx, streams)
}
