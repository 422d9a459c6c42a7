package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/musterhq/muster/internal/engine/record"
)

func newReplay(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "replay FILE",
		Short: "Replay a decision log and compare the decisions",
		Long: `Read a decision log that ` + "`muster-operator --decision-log FILE`" + ` wrote, give its inputs to an engine, and compare the
engine's decisions with the recorded ones. It needs no cluster. - reads the standard input.

The exit code is 0 if all decisions are the same, and 1 if one differs or the log cannot be read.`,
		Example: `  muster replay decisions.log
  zcat decisions.log.gz | muster replay -`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("name one decision log: `%s FILE`", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return replay(streams, args[0]) },
	}
}

func replay(streams genericiooptions.IOStreams, path string) error {
	log, err := openInput(streams, path)
	if err != nil {
		return fmt.Errorf("read the decision log: %w", err)
	}
	defer log.Close()
	result, err := record.Replay(log)
	if err != nil {
		return err
	}
	if result.Runs == 0 {
		return fmt.Errorf("%s has no decisions: write a log with `muster-operator --decision-log FILE`", path)
	}
	if result.Cut != "" {
		_, _ = fmt.Fprintf(streams.ErrOut, "a run ends early: %s\n", result.Cut)
	}
	for _, key := range result.Missed {
		_, _ = fmt.Fprintf(streams.ErrOut, "%s waited although it could have been admitted\n", key)
	}
	if d := result.Difference; d != nil {
		_, _ = fmt.Fprintf(streams.Out, "line %d, pass of %s, decision %d differs:\n  recorded %s\n  replayed %s\n",
			d.Line, d.At.Format("2006-01-02T15:04:05.000Z07:00"), d.Index+1, none(d.Recorded), none(d.Replayed))
		return errQuiet
	}
	_, err = fmt.Fprintf(streams.Out, "%s, %s: identical\n", countOf(result.Passes, "pass", "passes"),
		countOf(result.Decisions, "decision", "decisions"))
	return err
}

func none(decision string) string {
	if decision == "" {
		return "nothing"
	}
	return decision
}

func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
