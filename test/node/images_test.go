package node

import (
	_ "embed"
	"path/filepath"
	"slices"

	"github.com/musterhq/muster/test/node/machine"
	"github.com/musterhq/muster/test/node/registry"
)

// images returns the images that the manifests of these tests name, built from programs of this machine: one with only
// a shell, one that also has the languages of the examples in the documentation.
func images() (map[string]*registry.Image, error) {
	system, err := registry.Busybox("/bin/busybox")
	if err != nil {
		return nil, err
	}
	shell, err := registry.New(system)
	if err != nil {
		return nil, err
	}
	pause, err := registry.New(system, "sleep", "infinity")
	if err != nil {
		return nil, err
	}
	withLanguages := append(slices.Clone(system),
		registry.File{Name: "usr/local/bin/torchrun", Mode: 0o755, Content: []byte(torchrun)})
	for _, add := range []func() ([]registry.File, error){registry.Python, registry.Perl, bash} {
		files, err := add()
		if err != nil {
			return nil, err
		}
		withLanguages = append(files, withLanguages...)
	}
	languages, err := registry.New(withLanguages)
	if err != nil {
		return nil, err
	}
	operator, err := registry.Load(filepath.Join("..", "..", "bin", "image.tar"))
	if err != nil {
		return nil, err
	}
	return map[string]*registry.Image{
		machine.PauseImage:                         pause,
		"docker.io/library/muster-operator":        operator,
		"docker.io/library/busybox":                shell,
		"docker.io/library/python":                 languages,
		"docker.io/library/perl":                   languages,
		"example.com/work":                         shell,
		"gcr.io/k8s-staging-jobset/pytorch-resnet": languages,
	}, nil
}

func bash() ([]registry.File, error) { return registry.Program("/usr/bin/bash", "/bin/bash") }

// torchrun replaces the torchrun of the documentation's JobSet: it only checks names and ports.
//
//go:embed testdata/torchrun.py
var torchrun string
