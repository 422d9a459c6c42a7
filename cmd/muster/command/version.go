package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/musterhq/muster/cmd/muster/show"
)

// version is the version of the chart that this build belongs to, set by the linker (-X).
var version = ""

// build is what `muster version -o json` prints.
type build struct {
	Version    string `json:"version"`
	Commit     string `json:"commit,omitempty"`
	Modified   bool   `json:"modified,omitempty"`
	Kubernetes string `json:"kubernetes"` // of the embedded kubectl and the client libraries
	Go         string `json:"go"`
	Platform   string `json:"platform"`
}

func newVersion(streams genericiooptions.IOStreams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo()
			return printBuild(streams, thisBuild(info), output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "Output format. One of: (json, yaml).")
	return cmd
}

// thisBuild combines version, set by the linker, with what the Go tool stamped into the program.
func thisBuild(info *debug.BuildInfo) build {
	b := build{Version: "unknown", Kubernetes: "unknown", Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return b
	}
	b.Version = cmp.Or(version, info.Main.Version)
	for _, module := range info.Deps {
		if module.Path == "k8s.io/kubectl" {
			b.Kubernetes = module.Version
		}
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Commit = setting.Value
		case "vcs.modified":
			b.Modified = setting.Value == "true"
		}
	}
	return b
}

func printBuild(streams genericiooptions.IOStreams, b build, output string) error {
	var text []byte
	var err error
	switch output {
	case "":
		text = fmt.Appendf(nil, "muster %s (Kubernetes libraries %s, %s, %s)\n", b.Version, b.Kubernetes, b.Go, b.Platform)
	case "json":
		text, err = json.MarshalIndent(b, "", "  ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(b)
	default:
		return usageError("unknown output format %q: use json or yaml", output)
	}
	if err != nil {
		return fmt.Errorf("write the version: %w", err)
	}
	_, err = show.Programs(streams.Out).Write(text) // it holds nothing that a user wrote
	return err
}
