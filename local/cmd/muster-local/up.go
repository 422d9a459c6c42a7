package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterhq/muster/local/internal/lifecycle"
	"github.com/musterhq/muster/local/internal/operatorproc"
	"github.com/musterhq/muster/local/internal/simnode"
	"github.com/musterhq/muster/local/internal/statedir"
)

const dirUsage = "directory of the cluster's state and its kubeconfig (default $XDG_STATE_HOME/muster or ~/.local/state/muster)"

// maxNodesHere is the maximum number of nodes that run processes on this machine.
const maxNodesHere = 100

// upFlags are the flags of up as given.
type upFlags struct {
	dir           string
	ephemeral     bool
	port          int
	nodes         int
	runtime       string
	simNodes      int
	simGPUs       int
	simGPUProduct string
	noOperator    bool
	operator      string
	config        string
	operatorPause time.Duration
	verbosity     int
}

func upCommand() *cobra.Command {
	f := &upFlags{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster and keep it up until interrupted",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := f.options(cmd.Context())
			if err != nil {
				return err
			}
			options.Out = cmd.OutOrStdout()
			return lifecycle.Up(cmd.Context(), options)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.dir, "dir", "", dirUsage)
	flags.BoolVar(&f.ephemeral, "ephemeral", false,
		"keep the state in a temporary directory, unsynced, and remove it at the end")
	flags.IntVar(&f.port, "port", 0, "port of the API server on loopback; 0 for a free one")
	flags.IntVar(&f.nodes, "nodes", 1, "number of nodes that run pods as processes of this machine; 0 for none")
	flags.StringVar(&f.runtime, "runtime", "exec", "what runs the pods of these nodes: exec, or none")
	flags.IntVar(&f.simNodes, "sim-nodes", 0, "number of simulated nodes, whose pods run nothing")
	flags.IntVar(&f.simGPUs, "sim-gpus", 8, "GPUs of each simulated node")
	flags.StringVar(&f.simGPUProduct, "sim-gpu-product", "NVIDIA-H100-80GB-HBM3", "product name of these GPUs")
	flags.BoolVar(&f.noOperator, "no-operator", false, "do not run Muster's operator")
	flags.StringVar(&f.operator, "operator", "", "path of the operator's binary (default muster-operator beside this one)")
	flags.StringVar(&f.config, "config", "",
		"path of the operator's configuration file (default: none, every option at its default)")
	flags.DurationVar(&f.operatorPause, "operator-pause", 0,
		"longest pause before an operator that keeps dying is started again (default 30s)")
	_ = flags.MarkHidden("operator-pause") // for tests that kill the operator
	flags.IntVarP(&f.verbosity, "v", "v", 0, "verbosity of the components' logs")
	return cmd
}

// check returns the first mistake in the flags, nil if there is none.
func (u *upFlags) check() error {
	simulated := simnode.Config{Nodes: u.simNodes, GPUs: u.simGPUs, GPUProduct: u.simGPUProduct}.Check()
	for _, mistake := range []struct {
		made bool
		err  error
	}{
		{u.port < 0 || u.port > 65535,
			fmt.Errorf("--port %d is not a port; give one between 1 and 65535, or 0 for a free one", u.port)},
		{u.runtime != "exec" && u.runtime != "none", fmt.Errorf("--runtime %q is unknown; give exec or none", u.runtime)},
		{u.nodes < 0 || u.simNodes < 0 || u.simGPUs < 0,
			errors.New("--nodes, --sim-nodes and --sim-gpus count things; give 0 or more")},
		{u.nodes > maxNodesHere,
			fmt.Errorf("--nodes %d is more than one machine can be, at most %d; simulate machines with --sim-nodes", u.nodes, maxNodesHere)},
		{u.noOperator && u.operator != "", errors.New("--operator and --no-operator exclude each other; give one of them")},
		{u.noOperator && u.config != "", errors.New(
			"--config is the operator's and --no-operator leaves it out; give one of them")},
		{simulated != nil, fmt.Errorf("--sim-nodes, --sim-gpus or --sim-gpu-product: %w", simulated)},
		{u.ephemeral && u.dir != "",
			errors.New("--ephemeral makes a directory of its own; leave out --dir, or --ephemeral to keep the state")},
	} {
		if mistake.made {
			return usageError{mistake.err}
		}
	}
	return nil
}

// options checks the flags and converts them to lifecycle.Options.
func (u *upFlags) options(ctx context.Context) (lifecycle.Options, error) {
	o := lifecycle.Options{
		Port:          u.port,
		OperatorPause: u.operatorPause,
		Verbosity:     u.verbosity,
		Nodes: lifecycle.Nodes{
			Exec:                u.nodes,
			Simulated:           u.simNodes,
			SimulatedGPUs:       u.simGPUs,
			SimulatedGPUProduct: u.simGPUProduct,
		},
	}
	if u.runtime == "none" {
		o.Nodes.Exec = 0
	}
	if err := u.check(); err != nil {
		return o, err
	}
	var err error
	if !u.noOperator {
		if o.Operator, err = u.operatorPath(); err != nil {
			return o, err
		}
	}
	if u.config != "" {
		if o.OperatorConfiguration, err = u.configPath(ctx, o.Operator); err != nil {
			return o, err
		}
	}
	if !u.ephemeral {
		o.Dir, err = stateDirectory(u.dir)
	}
	return o, err
}

// operatorPath returns the path of the operator's binary, which exists.
func (u *upFlags) operatorPath() (string, error) {
	path := u.operator
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("finding the operator's binary: %w; name it with --operator", err)
		}
		path = filepath.Join(filepath.Dir(self), "muster-operator")
	}
	if err := operatorproc.CheckBinary(path); err != nil {
		return "", usageError{err}
	}
	// The operator's image contains binaries that are beside the operator here: containers find them last in their
	// PATH.
	if err := os.Setenv("PATH", os.Getenv("PATH")+string(filepath.ListSeparator)+filepath.Dir(path)); err != nil {
		return "", fmt.Errorf("letting pods find the agent: %w", err)
	}
	return path, nil
}

// configPath returns the path of the operator's configuration file, after the operator has validated it: an invalid
// file is reported before anything is started.
func (u *upFlags) configPath(ctx context.Context, operator string) (string, error) {
	path, err := filepath.Abs(u.config)
	if err != nil {
		return "", fmt.Errorf("finding the operator's configuration: %w", err)
	}
	return path, operatorproc.CheckConfiguration(ctx, operator, path)
}

func stateDirectory(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	return statedir.Default()
}
