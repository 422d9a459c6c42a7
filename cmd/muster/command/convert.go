package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/musterhq/muster/cmd/muster/convert"
	"github.com/musterhq/muster/cmd/muster/show"
)

func newConvert(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "convert FILE...",
		Short: "Print manifests of Kueue's other API versions in the one that Muster serves",
		Long: `Print the objects in files of YAML or JSON, with those of kueue.x-k8s.io/v1beta2 and v1alpha1 as v1beta1, for
kubectl apply. All other objects are printed as they are. It needs no cluster. - reads the standard input.`,
		Example: `  muster convert queues.yaml | kubectl apply --server-side -f -
  kubectl kustomize queues/ | muster convert -`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("name at least one file, or - for the standard input: `%s FILE...`", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			for i, path := range args {
				if i > 0 {
					_, _ = fmt.Fprintln(streams.Out, "---")
				}
				if err := convertFile(streams, path); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func convertFile(streams genericiooptions.IOStreams, path string) error {
	in, err := openInput(streams, path)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := convert.Stream(in, show.Texts(streams.Out),
		func(note string) { _, _ = fmt.Fprintln(streams.ErrOut, note) }); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
