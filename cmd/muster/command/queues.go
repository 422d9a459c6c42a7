package command

import (
	"context"
	"time"

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
		Short:   "List queues: quota, who holds it, and what the first in line waits for",
		Long: `List the ClusterQueues, a line for each resource of each flavor. With -n, only those that a LocalQueue of that
namespace leads to.`,
		Example: `  muster queues
  muster queues -n lab -w`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), streams) },
	}
	o.config.AddFlags(cmd.Flags())
	o.output.addTo(cmd)
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "List all ClusterQueues, which is the default without -n.")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Go on as queues change, until Ctrl-C.")
	return cmd
}

func (o *queuesOptions) run(ctx context.Context, streams genericiooptions.IOStreams) error {
	queues := renderer[view.Queue]{
		table:  show.QueueTable,
		object: func(queues []view.Queue) runtime.Object { return view.NewQueueList(queues) },
		name:   func(queue *view.Queue) string { return "clusterqueue.kueue.x-k8s.io/" + queue.Name },
	}
	print, err := printerOf(streams.Out, o.output, queues)
	if err != nil {
		return err
	}
	order, err := newSorter(o.output.sortBy)
	if err != nil {
		return err
	}
	cluster, err := connect(o.config)
	if err != nil {
		return err
	}
	namespace := *o.config.Namespace
	if o.allNamespaces {
		namespace = ""
	}
	// The head of a queue may be a job of any namespace, so all are read whatever is shown.
	scope := observe.Scope{ClusterQueues: true}
	list := func(seen *view.Seen, now time.Time) ([]view.Queue, error) {
		queues := view.Queues(seen, namespace, now)
		return queues, sortValues(order, queues)
	}
	if o.watch {
		return follow(ctx, streams, cluster, scope, o.output, queues, list, show.QueueChanges())
	}
	seen, err := cluster.See(ctx, scope)
	if err != nil {
		return explainConnection(err)
	}
	found, err := list(seen, time.Now())
	if err != nil {
		return err
	}
	if len(found) == 0 && o.output.isTable() {
		emptyNote(streams.ErrOut, "queues", namespace)
		return nil
	}
	return print(found)
}
