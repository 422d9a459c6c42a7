package command

import (
	"bytes"
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

// printerFor returns a function that prints an object in a format of -o other than a table. JSON and YAML have control
// characters as escapes of these formats. Templates and paths print texts as they are, so a terminal gets them with
// control characters escaped.
func printerFor(kube *genericclioptions.PrintFlags, out io.Writer) (func(runtime.Object) error, error) {
	printer, err := kube.ToPrinter()
	if err != nil {
		return nil, err
	}
	to := show.Texts(out)
	switch *kube.OutputFormat {
	case "json":
		to = show.JSON(out)
	case "yaml":
		return yamlPrinter(kube, show.Programs(out))
	}
	return func(object runtime.Object) error { return printer.PrintObj(object, to) }, nil
}

// yamlPrinter returns a function that prints each object as a YAML document.
func yamlPrinter(kube *genericclioptions.PrintFlags, out io.Writer) (func(runtime.Object) error, error) {
	printer, err := kube.JSONYamlPrintFlags.ToPrinter("json")
	if err != nil {
		return nil, err
	}
	separator := ""
	return func(object runtime.Object) error {
		var text bytes.Buffer
		if err := printer.PrintObj(object, &text); err != nil {
			return err
		}
		document, err := show.YAML(text.Bytes())
		if err != nil {
			return fmt.Errorf("write YAML: %w", err)
		}
		_, err = fmt.Fprintf(out, "%s%s", separator, document)
		separator = "---\n"
		return err
	}, nil
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
	printObject, err := printerFor(o.kube, out)
	switch {
	case genericclioptions.IsNoCompatiblePrinterError(err):
		return nil, usageError("%w,wide", err) // the error ends with the list of known formats
	case err != nil:
		return nil, usageError("%w", err)
	}
	return func(values []T) error { return printObject(r.object(values)) }, nil
}
