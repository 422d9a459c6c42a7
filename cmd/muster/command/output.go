package command

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/musterhq/muster/cmd/muster/show"
)

// outputFlags are kubectl's -o and --no-headers, and --sort-by, for values that are not API objects.
type outputFlags struct {
	kube      *genericclioptions.PrintFlags
	noHeaders bool
	sortBy    string
}

func newOutputFlags() *outputFlags { return &outputFlags{kube: genericclioptions.NewPrintFlags("")} }

// addTo adds the flags; sortable is a field by which users may want to sort.
func (o *outputFlags) addTo(cmd *cobra.Command, sortable string) {
	o.kube.AddFlags(cmd)
	cmd.Flag("output").Usage = "Output format. One of: (wide, name, json, yaml, jsonpath=…, go-template=…)."
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "Print no header line.")
	cmd.Flags().StringVar(&o.sortBy, "sort-by", "", "Sort by this field of -o json, such as "+sortable+".")
}

// format returns the value of -o.
func (o *outputFlags) format() string { return *o.kube.OutputFormat }

// isTable reports whether the output is a table for people rather than a format for programs.
func (o *outputFlags) isTable() bool {
	return (o.format() == "" || o.format() == "wide") && *o.kube.TemplatePrinterFlags.TemplateArgument == ""
}

func (o *outputFlags) tableOptions() printers.PrintOptions {
	return printers.PrintOptions{NoHeaders: o.noHeaders, Wide: o.format() == "wide"}
}

// writerFor returns the writer for a format of -o. JSON and YAML are as their encoders write them. Templates and paths print
// texts as they are, so a terminal gets them with control characters escaped.
func writerFor(kube *genericclioptions.PrintFlags, out io.Writer) io.Writer {
	_, terminal := show.Terminal(out)
	if format := *kube.OutputFormat; terminal && format != "json" && format != "yaml" {
		return out
	}
	return show.Programs(out)
}

// renderer converts a list of values to a table, to an API object, and each value to its name.
type renderer[T any] struct {
	table  func([]T) *metav1.Table
	object func([]T) runtime.Object
	name   func(*T) string
}

// printerOf returns a function that writes a list to out in the selected format. The function may be called repeatedly:
// a table keeps its column widths and does not repeat its header.
func printerOf[T any](out io.Writer, o *outputFlags, r renderer[T]) (func([]T) error, error) {
	switch {
	case o.isTable():
		printer, columns := printers.NewTablePrinter(o.tableOptions()), printers.GetNewTabWriter(out)
		return func(values []T) error {
			if err := printer.PrintObj(show.Printable(r.table(values), o.format() == "wide"), columns); err != nil {
				return fmt.Errorf("print the table: %w", err)
			}
			return columns.Flush()
		}, nil
	case o.format() == "name":
		return func(values []T) error {
			for i := range values {
				if _, err := fmt.Fprintln(out, r.name(&values[i])); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}
	printer, err := o.kube.ToPrinter()
	switch {
	case genericclioptions.IsNoCompatiblePrinterError(err):
		return nil, usageError("%w,wide", err) // the error ends with the list of known formats
	case err != nil:
		return nil, usageError("%w", err)
	}
	to := writerFor(o.kube, out)
	return func(values []T) error { return printer.PrintObj(r.object(values), to) }, nil
}
