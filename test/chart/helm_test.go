package chart

import (
	"errors"
	"fmt"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/musterhq/muster/internal/testcluster"
)

const (
	folder    = "../../charts/muster"
	name      = "operator"
	namespace = "lattice"
)

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{NoAPIs: true, SimNodes: 2}) }

// values of a chart.
type values = map[string]any

// helm installs the chart on the cluster of the tests, as the release operator in namespace lattice. Nothing of it is left when
// the test is done, however it ends.
type helm struct {
	t      *testing.T
	config *action.Configuration
}

func newHelm(t *testing.T) helm {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	kubeconfig, in := testcluster.Get(t).Kubeconfig, namespace
	flags.KubeConfig, flags.Namespace = &kubeconfig, &in
	flags.WrapConfigFn = func(c *rest.Config) *rest.Config {
		c.QPS, c.RateLimiter = -1, nil // the tests wait for nobody
		return c
	}
	config := &action.Configuration{}
	if err := config.Init(flags, namespace, "secret", func(string, ...any) {}); err != nil {
		t.Fatal(err)
	}
	h := helm{t, config}
	t.Cleanup(h.clear)
	return h
}

// load reads the chart anew: Helm changes what it is given.
func load(t *testing.T) *helmchart.Chart {
	t.Helper()
	c, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (h helm) installer() *action.Install {
	install := action.NewInstall(h.config)
	install.ReleaseName, install.Namespace, install.CreateNamespace = name, namespace, true
	return install
}

func (h helm) install(with values) *release.Release {
	h.t.Helper()
	done, err := h.installer().Run(load(h.t), with)
	if err != nil {
		h.t.Fatalf("helm install: %v", err)
	}
	return done
}

func (h helm) upgrade(with values) {
	h.t.Helper()
	upgrade := action.NewUpgrade(h.config)
	upgrade.Namespace, upgrade.ResetThenReuseValues = namespace, true
	if _, err := upgrade.Run(name, load(h.t), with); err != nil {
		h.t.Fatalf("helm upgrade: %v", err)
	}
}

func (h helm) uninstall() {
	h.t.Helper()
	if _, err := action.NewUninstall(h.config).Run(name); err != nil {
		h.t.Fatalf("helm uninstall: %v", err)
	}
}

// clear takes away the release, if there is one, and what it keeps: the definitions, and all objects of them.
func (h helm) clear() {
	uninstall := action.NewUninstall(h.config)
	uninstall.IgnoreNotFound = true
	if _, err := uninstall.Run(name); err != nil {
		h.t.Errorf("helm uninstall: %v", err)
	}
	letGo(h.t)
	forget(h.t)
}

// render gives what Helm would apply, as `helm template` does: without a cluster, which is said to be of the version.
func render(t *testing.T, version string, with values, apis ...string) (string, error) {
	t.Helper()
	install := action.NewInstall(&action.Configuration{})
	install.ReleaseName, install.Namespace = name, namespace
	install.DryRun, install.DryRunOption, install.ClientOnly = true, "client", true
	install.APIVersions = apis
	kube, err := chartutil.ParseKubeVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	install.KubeVersion = kube
	done, err := install.Run(load(t), with)
	if err != nil {
		return "", err
	}
	return done.Manifest, nil
}

// lint gives what `helm lint --strict` has to say.
func lint(with values) error {
	linter := action.NewLint()
	linter.Strict, linter.Namespace = true, namespace
	result := linter.Run([]string{folder}, with)
	err := errors.Join(result.Errors...)
	for _, message := range result.Messages {
		if message.Severity > 1 { // information is no complaint
			err = errors.Join(err, fmt.Errorf("%s", message))
		}
	}
	return err
}
