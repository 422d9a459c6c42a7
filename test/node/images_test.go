package node

import (
	_ "embed"
	"path/filepath"
	"slices"

	"github.com/musterhq/muster/test/node/machine"
	"github.com/musterhq/muster/test/node/registry"
)

// images are what the manifests of these tests name, made of programs of this machine: one has a shell alone, the other the
// languages of the documents' examples too.
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
	languages := append(slices.Clone(system), registry.File{Name: "usr/local/bin/torchrun", Mode: 0o755, Content: []byte(torchrun)})
	for _, add := range []func() ([]registry.File, error){registry.Python, registry.Perl, bash} {
		files, err := add()
		if err != nil {
			return nil, err
		}
		languages = append(files, languages...)
	}
	workshop, err := registry.New(languages)
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
		"docker.io/library/python":                 workshop,
		"docker.io/library/perl":                   workshop,
		"example.com/work":                         shell,
		"gcr.io/k8s-staging-jobset/pytorch-resnet": workshop,
	}, nil
}

func bash() ([]registry.File, error) { return registry.Program("/usr/bin/bash", "/bin/bash") }

// torchrun is what the document's JobSet runs, as far as names and ports go.
//
//go:embed testdata/torchrun.py
var torchrun string
