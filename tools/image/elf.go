package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
)

// errDynamic is returned for a program that the image could not run.
var errDynamic = errors.New("the program needs shared libraries, which the image does not have: build it with CGO_ENABLED=0")

// static returns an error unless the content is a statically linked Linux program.
func static(content []byte) error {
	program, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("not a Linux program: %w", err)
	}
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP {
			return errDynamic
		}
	}
	return nil
}

// architecture returns the architecture of a program by its name in images, such as amd64; empty if it is no ELF file.
func architecture(path string) string {
	program, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer program.Close()
	switch program.Machine {
	case elf.EM_X86_64:
		return "amd64"
	case elf.EM_AARCH64:
		return "arm64"
	default:
		return program.Machine.String()
	}
}
