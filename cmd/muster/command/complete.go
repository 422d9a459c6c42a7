package command

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/musterhq/muster/cmd/muster/localcluster"
	"github.com/musterhq/muster/cmd/muster/observe"
	"github.com/musterhq/muster/cmd/muster/view"
)

// completionPatience bounds how long shell completion may query the cluster.
const completionPatience = 3 * time.Second

// complete completes the name of a job: it offers kind/name, or the bare name where that matches the prefix begun. If
// nothing in the current namespace matches and begun starts with a namespace, it offers the jobs of that namespace.
func (o *explainOptions) complete(cmd *cobra.Command, words []string, begun string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	cluster, err := connect(ctx, o.config)
	if err != nil || len(words) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	namespace, explicit, err := namespaceOf(o.config)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	offers := offersOf(ctx, cluster, namespace, func(job *view.Job) []string { return []string{job.Title(), job.Name} }, begun)
	if named, _, ok := strings.Cut(begun, "/"); ok && named != "" && len(offers) == 0 && (!explicit || named == namespace) {
		offers = offersOf(ctx, cluster, named, func(job *view.Job) []string { return []string{job.FullTitle()} }, begun)
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}

// offersOf returns, for each job of the namespace, the first of its names that has the prefix begun; none if the jobs
// cannot be read.
func offersOf(ctx context.Context, cluster *observe.Cluster, namespace string, names func(*view.Job) []string, begun string) (offers []string) {
	seen, err := cluster.See(ctx, observe.Scope{Namespace: namespace})
	if err != nil {
		return nil
	}
	jobs := view.Jobs(seen, time.Now())
	for i := range jobs {
		for _, name := range names(&jobs[i]) {
			if strings.HasPrefix(name, begun) {
				offers = append(offers, name)
				break
			}
		}
	}
	return offers
}

// addClusterFlags adds kubectl's flags that select a cluster and a namespace, and registers shell completion for those
// whose values can be listed.
func addClusterFlags(cmd *cobra.Command, flags *genericclioptions.ConfigFlags) {
	flags.AddFlags(cmd.Flags())
	offer := func(flag string, names func(context.Context) []string) {
		utilruntime.Must(cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			offers := slices.DeleteFunc(names(cmd.Context()), func(name string) bool { return !strings.HasPrefix(name, begun) })
			return offers, cobra.ShellCompDirectiveNoFileComp
		}))
	}
	offer("namespace", func(ctx context.Context) []string { return namespacesOf(ctx, flags) })
	kubeconfig := func() clientcmdapi.Config {
		localcluster.UseRunning()
		config, _ := flags.ToRawKubeConfigLoader().RawConfig() // an unreadable kubeconfig offers nothing
		return config
	}
	offer("context", func(context.Context) []string { return slices.Sorted(maps.Keys(kubeconfig().Contexts)) })
	offer("cluster", func(context.Context) []string { return slices.Sorted(maps.Keys(kubeconfig().Clusters)) })
	offer("user", func(context.Context) []string { return slices.Sorted(maps.Keys(kubeconfig().AuthInfos)) })
}

// namespacesOf returns the namespaces of the cluster; none if the user may not list them or the API server does not
// answer.
func namespacesOf(ctx context.Context, flags *genericclioptions.ConfigFlags) []string {
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	cluster, err := connect(ctx, flags)
	if err != nil {
		return nil
	}
	names, _ := cluster.Namespaces(ctx)
	return names
}
