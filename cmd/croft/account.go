package main

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"croft/rest"
)

func (a *app) accountCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "account",
		Short: "Make the secrets of accounts for the REST APIs",
		Long: `Accounts for the REST APIs are listed in croft.yaml, under rest.accounts: a name,
the hash of a password or token, and the member they act as. These commands make
the hashes.`,
	})
	c.AddCommand(a.accountHashCommand(), a.accountTokenCommand())
	return c
}

func (a *app) accountHashCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "hash",
		Short: "Print the hash of a password",
		Long: `Read a password, from the terminal or the first line of standard input, and print
its hash (argon2id) for the field password of an account. bcrypt hashes of other
tools will do, too.`,
		Example: "  croft account hash",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			password, err := a.readPassword()
			if err != nil {
				return err
			}
			hash, err := rest.HashPassword(password, rand.Reader)
			if err != nil {
				return err
			}
			if a.json {
				return a.writeJSON(map[string]string{"password": hash})
			}
			fmt.Fprintln(a.out, hash)
			return nil
		},
	}
}

func (a *app) readPassword() (string, error) {
	if f, ok := a.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(a.errs, "Password: ")
		text, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(a.errs)
		if err != nil {
			return "", fmt.Errorf("reading a password: %w", err)
		}
		return string(text), nil
	}
	line, err := bufio.NewReader(a.in).ReadString('\n')
	if line == "" && err != nil {
		return "", fmt.Errorf("reading a password from standard input: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

func (a *app) accountTokenCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "token",
		Short: "Draw a token and print it with its hash",
		Long: `Draw a token and print it, once, with its hash for the field token of an account.
Clients send it as a bearer token, or in place of the password.`,
		Example: "  croft account token",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			token, hash, err := rest.NewToken(rand.Reader)
			if err != nil {
				return err
			}
			if a.json {
				return a.writeJSON(map[string]string{"token": token, "hash": hash})
			}
			fmt.Fprintf(a.out, "token: %s\nhash:  %s\n", token, hash)
			return nil
		},
	}
}
