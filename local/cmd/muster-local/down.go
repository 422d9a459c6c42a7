package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterhq/muster/local/internal/statedir"
)

// stopTimeout is longer than a cluster with many processes takes to stop.
const stopTimeout = 2 * time.Minute

func downCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the cluster that another `up` runs in a directory",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := stateDirectory(dir)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), stopTimeout)
			defer cancel()
			pid, err := statedir.Stop(ctx, path)
			if errors.Is(err, statedir.ErrNotRunning) {
				fmt.Fprintf(cmd.OutOrStdout(), "nothing runs in %s\n", path)
				return nil
			} else if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "stopped process %d, which ran in %s\n", pid, path)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", dirUsage)
	return cmd
}
