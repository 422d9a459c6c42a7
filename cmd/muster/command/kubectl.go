package command

import (
	"errors"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the login methods that kubeconfigs of real clusters name
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	kubectl "k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/musterhq/muster/cmd/muster/localcluster"
)

func newKubectl() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl …",
		Short: "The real kubectl, with every flag and command of its own",
		// kubectl reads its own flags: none of them, --help included, is looked at here.
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if code := runKubectl(args); code != exitDone {
				return &codedError{code, errors.New("")}
			}
			return nil
		},
	}
}

// runKubectl does what kubectl's own main does. On most errors it does not come back: kubectl ends the process with
// its own message and exit code.
func runKubectl(args []string) int {
	// An interrupt must end kubectl as it would on its own.
	signal.Reset()
	localcluster.UseRunning()
	// kubectl reads its preferences and its plugins' names from the process's arguments.
	os.Args = append([]string{"kubectl"}, args...)
	_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)) // as kubectl does: an unreadable -v is reported by the flags
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		cmdutil.CheckErr(err)
		return exitFailed
	}
	return exitDone
}
