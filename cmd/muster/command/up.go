package command

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/musterhq/muster/cmd/muster/localcluster"
)

func newUp() *cobra.Command {
	return passToLocal(&cobra.Command{
		Use:   "up [flags]",
		Short: "Start a real Kubernetes control plane with Muster on this machine, until Ctrl-C",
		Long: `Start etcd, kube-apiserver, kube-scheduler, kube-controller-manager, Muster's operator and, by default, a node
that runs containers' commands as processes of this machine. It stays in the foreground and stops all of it on Ctrl-C
or SIGTERM. The program muster-local does this; its flags are listed here once it has been built.`,
	})
}

func newDown() *cobra.Command {
	return passToLocal(&cobra.Command{
		Use:   "down [flags]",
		Short: "Stop the cluster that `muster up` runs elsewhere",
		Long: `Stop the cluster that a ` + "`muster up`" + ` in another terminal runs. Its data stays, for the next ` + "`muster up`" + ` on the
same directory.`,
	})
}

// passToLocal makes cmd run the command of the same name of muster-local, with all flags passed through.
func passToLocal(cmd *cobra.Command) *cobra.Command {
	cmd.DisableFlagParsing = true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := localcluster.Exec(append([]string{cmd.Name()}, args...)...)
		if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
			return cmd.Help() // Exec returned, so muster-local is missing and cannot print its help
		}
		return err
	}
	return cmd
}
