// Command bundle renders the chart with its default values into one file for `kubectl apply --server-side`, for
// clusters without Helm.
//
// Usage: bundle CHART OUT
package main

import (
	"fmt"
	"os"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
)

const (
	// namespace is the operator's namespace in the bundle.
	namespace = "muster-system"

	// kubernetes is the oldest version that accepts the bundle: mutatingPolicies, an API that the bundle uses, is new
	// in it.
	kubernetes       = "v1.36.0"
	mutatingPolicies = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"

	header = `# Muster %s: kubectl apply --server-side -f this file. Generated from the chart; docs/operate/install.md has more.
apiVersion: v1
kind: Namespace
metadata:
  name: %s
  labels:
    pod-security.kubernetes.io/enforce: restricted
`
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: bundle CHART OUT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(folder, out string) error {
	chart, err := loader.Load(folder)
	if err != nil {
		return fmt.Errorf("reading the chart: %w", err)
	}
	version, err := chartutil.ParseKubeVersion(kubernetes)
	if err != nil {
		return err
	}
	install := action.NewInstall(&action.Configuration{})
	install.ReleaseName, install.Namespace = "muster", namespace
	install.DryRun, install.DryRunOption, install.ClientOnly = true, "client", true
	install.KubeVersion, install.APIVersions = version, chartutil.VersionSet{mutatingPolicies}
	release, err := install.Run(chart, nil)
	if err != nil {
		return fmt.Errorf("rendering the chart: %w", err)
	}
	text := fmt.Sprintf(header, chart.AppVersion(), namespace) + release.Manifest
	if err := os.WriteFile(out, []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	return nil
}
