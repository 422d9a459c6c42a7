// Command crdgen writes the CRDs of the API packages to a folder, one file per kind.
//
// The schemas come from controller-tools, as controller-gen would make them. crdgen then changes what markers on this
// project's types cannot express, because it lies inside embedded Kubernetes types: bounds that make rules affordable,
// defaults within a Job's template, and the removal of descriptions that would make the CRDs ten times larger.
//
// Usage: crdgen ROOT OUT PACKAGE... where ROOT is the folder of the module, and OUT and the packages are relative to
// it.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"golang.org/x/tools/go/packages"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-tools/pkg/crd"
	crdmarkers "sigs.k8s.io/controller-tools/pkg/crd/markers"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: crdgen ROOT OUT PACKAGE...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "crdgen:", err)
		os.Exit(1)
	}
}

func run(root, out string, patterns []string) error {
	// The loader runs the go command for packages of the working directory's module.
	if err := os.Chdir(root); err != nil {
		return fmt.Errorf("entering the module: %w", err)
	}
	definitions, err := generate(patterns)
	if err != nil {
		return err
	}
	for _, definition := range definitions {
		// Other products install CRDs of the same names, which must not be changed.
		definition.Labels = map[string]string{"muster.dev/served": "true"}
		// Helm must not delete CRDs: all objects of the kind would be deleted with them.
		definition.Annotations = map[string]string{"helm.sh/resource-policy": "keep"}
		for i := range definition.Spec.Versions {
			amend(definition.Spec.Names.Kind, definition.Spec.Versions[i].Schema.OpenAPIV3Schema)
		}
		if err := write(out, definition); err != nil {
			return err
		}
	}
	return removeOthers(out, definitions)
}

// generate returns the CRDs of all kinds in the packages, sorted by name.
func generate(patterns []string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	roots, err := loader.LoadRoots(patterns...)
	if err != nil {
		return nil, fmt.Errorf("loading packages: %w", err)
	}
	registry := &markers.Registry{}
	if err := crdmarkers.Register(registry); err != nil {
		return nil, fmt.Errorf("registering markers: %w", err)
	}
	parser := &crd.Parser{
		Collector:                  &markers.Collector{Registry: registry},
		Checker:                    &loader.TypeChecker{NodeFilters: []loader.NodeFilter{crd.Generator{}.CheckFilter()}},
		GenerateEmbeddedObjectMeta: true,
	}
	crd.AddKnownTypes(parser)
	for _, root := range roots {
		parser.NeedPackage(root)
	}
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, kind := range crd.FindKubeKinds(parser, crd.FindMetav1(roots)) {
		parser.NeedCRDFor(kind, nil)
		raw := parser.CustomResourceDefinitions[kind]
		crd.FixTopLevelMetadata(raw)
		converted, err := crd.AsVersion(raw, schema.GroupVersion{Group: apiextensionsv1.GroupName, Version: "v1"})
		if err != nil {
			return nil, fmt.Errorf("converting %s: %w", kind, err)
		}
		definitions = append(definitions, converted.(*apiextensionsv1.CustomResourceDefinition))
	}
	// The loader reads packages outside the module only partly, and so reports type errors in them.
	if loader.PrintErrors(roots, packages.TypeError) {
		return nil, fmt.Errorf("the packages have errors")
	}
	sort.Slice(definitions, func(i, j int) bool { return definitions[i].Name < definitions[j].Name })
	return definitions, nil
}

func fileName(definition *apiextensionsv1.CustomResourceDefinition) string {
	return fmt.Sprintf("%s_%s.yaml", definition.Spec.Group, definition.Spec.Names.Plural)
}

// removeOthers deletes the files of kinds that do not exist any more.
func removeOthers(out string, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	keep := map[string]bool{}
	for _, definition := range definitions {
		keep[filepath.Join(out, fileName(definition))] = true
	}
	present, err := filepath.Glob(filepath.Join(out, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range present {
		if !keep[file] {
			if err := os.Remove(file); err != nil {
				return fmt.Errorf("removing the definition of a kind that no longer exists: %w", err)
			}
		}
	}
	return nil
}
