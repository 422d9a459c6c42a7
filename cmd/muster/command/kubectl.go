package command

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the login methods that kubeconfigs of real clusters name
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	kubectl "k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/musterhq/muster/cmd/muster/localcluster"
	"github.com/musterhq/muster/cmd/muster/show"
)

func newKubectl() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl …",
		Short: "The real kubectl, with every flag and command of its own",
		// kubectl parses its own flags, including --help.
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if code := runKubectl(args); code != exitDone {
				return &codedError{code, errors.New("")}
			}
			return nil
		},
	}
}

// runKubectl does what kubectl's own main does. On most errors it does not return: kubectl exits the process with its
// own message and exit code.
func runKubectl(args []string) int {
	// An interrupt must end kubectl as it does when kubectl runs alone.
	signal.Reset()
	localcluster.UseRunning()
	// kubectl reads its preferences and the names of its plugins from os.Args.
	os.Args = append([]string{"kubectl"}, args...)
	_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)) // as kubectl does: an unreadable -v is reported by the flags
	root := kubectl.NewDefaultKubectlCommand()
	cmdutil.BehaviorOnFatal(func(message string, code int) {
		fmt.Fprint(show.NewOutput(os.Stderr), extendKubectlError(message, clusterFlags(root)))
		os.Exit(code)
	})
	if err := cli.RunNoErrOutput(root); err != nil {
		cmdutil.CheckErr(err)
		return exitFailed
	}
	return exitDone
}

// clusterFlags returns the values of kubectl's flags that select a cluster.
func clusterFlags(root *cobra.Command) *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(false)
	for name, value := range map[string]*string{"kubeconfig": flags.KubeConfig, "server": flags.APIServer,
		"context": flags.Context, "cluster": flags.ClusterName} {
		if given := root.PersistentFlags().Lookup(name); given != nil {
			*value = given.Value.String()
		}
	}
	return flags
}

// extendKubectlError returns kubectl's final message, extended by what to set if nothing selects a cluster: kubectl
// then tries localhost:8080.
func extendKubectlError(message string, flags *genericclioptions.ConfigFlags) string {
	if message != "" && !strings.HasSuffix(message, "\n") {
		message += "\n"
	}
	if err := checkClusterSelected(flags); err != nil && strings.Contains(message, "localhost:8080") {
		message += "muster: " + err.Error() + "\n"
	}
	return message
}
