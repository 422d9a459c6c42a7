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

// completionTimeout bounds how long shell completion may query the cluster.
const completionTimeout = 3 * time.Second

// complete completes the name of a job: it offers kind/name, or the bare name where that matches the prefix prefix. If
// nothing in the current namespace matches and prefix starts with a namespace, it offers the jobs of that namespace.
func (eo *explainOptions) complete(cmd *cobra.Command, words []string,
	prefix string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	cluster, err := connect(ctx, eo.config)
	if err != nil || len(words) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	namespace, explicit, err := namespaceOf(eo.config)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	offers := completionsOf(ctx, cluster, namespace,
		func(job *view.Job) []string { return []string{job.Title(), job.Name} }, "", prefix)
	if named, _, ok := strings.Cut(prefix, "/"); ok && named != "" && len(offers) == 0 &&
		(!explicit || named == namespace) {
		offers = completionsOf(ctx, cluster, named, func(job *view.Job) []string { return []string{job.FullTitle()} },
			named+"/", prefix)
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}

// completionsOf returns, for each job of the namespace, the first of its names that has the prefix prefix, which begins
// with before; none if the jobs cannot be read.
func completionsOf(ctx context.Context, cluster *observe.Cluster, namespace string, names func(*view.Job) []string,
	before, prefix string) (offers []string) {
	kind, _, whole := strings.Cut(strings.TrimPrefix(prefix, before), "/")
	if !whole {
		kind = "" // the user may type more letters
	}
	snapshot, err := cluster.Names(ctx, namespace, kind)
	if err != nil {
		return nil
	}
	jobs := view.Jobs(snapshot, time.Now())
	for i := range jobs {
		for _, name := range names(&jobs[i]) {
			if strings.HasPrefix(name, prefix) {
				offers = append(offers, name)
				break
			}
		}
	}
	return offers
}

// addClusterFlags adds kubectl's flags that select a cluster and a namespace, and registers shell completion for the
// flags whose values can be listed.
func addClusterFlags(cmd *cobra.Command, flags *genericclioptions.ConfigFlags) {
	flags.AddFlags(cmd.Flags())
	offer := func(flag string, names func(context.Context) []string) {
		utilruntime.Must(cmd.RegisterFlagCompletionFunc(flag,
			func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
				offers := slices.DeleteFunc(names(cmd.Context()),
					func(name string) bool { return !strings.HasPrefix(name, prefix) })
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
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	cluster, err := connect(ctx, flags)
	if err != nil {
		return nil
	}
	names, _ := cluster.Namespaces(ctx)
	return names
}
