package main

import (
	"fmt"
	"net/mail"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin"
)

func TestAnErrorCountsAddressesAndShowsNone(t *testing.T) {
	long := strings.Repeat("x", 999) + "@example.com"
	for members, want := range map[string]string{
		`"to": "ada@example.com, bob at example.com"`:                                "to: address 2 is",
		`"to": "bob at example.com"`:                                                 "to: address 1 is not of the form name@example.com or",
		`"to": ["ada@example.com, \"B, Bob\" <bob@example.com>", "", "eve@"]`:        "to: address 3 is",
		`"to": ",ada@example.com,, bob@example.com,eve@,mallory@example.com"`:        "to: address 3 is",
		`"to": "ada@example.com", "cc": "bob@example.com, bob@"`:                     "cc: address 2 is",
		`"to": "ada@example.com", "bcc": ["bob@example.com", "bob (\u0001"]`:         "bcc: address 2 is",
		`"to": "ada@example.com", "replyTo": "bob@example.com <bob>"`:                "replyTo: address 1 is",
		`"to": "` + strings.Repeat(`bob,`, 100_000) + `"`:                            "to: address 1 is",
		`"to": "` + strings.Repeat(`bob@example.com,`, 10_000) + `b <ob@"`:           "to: address 10001 is",
		`"to": "\"` + strings.Repeat(`Bob, `, 1000) + `\" <bob@example.com>, eve@"`:  "to: address 2 is",
		`"to": "ada@example.com, \"b\tb\"@example.com"`:                              "to: address 2 holds a control character",
		`"to": "ada@[::1], Crew: bob@example.com, eve@example.com; (ad, hoc), eve@"`: "to: address 4 is",
		`"to": "ada@example.com, bob@example.com, ` + long + `"`:                     "header To contains a word that is too long",
		`"to": "ada@example.com", "replyTo": "bob@example.com, b <` + long + `>"`:    "header Reply-To contains a word that is too long",
	} {
		s := smtpSettings{from: mail.Address{Address: "jobs@example.org"}}
		err := mailer{settings: s}.sendEmail(t.Context(), emailJob(t, `{"subject": "s", "text": "t", `+members+`}`))
		require.ErrorContains(t, err, want)
		require.Equal(t, plugin.Verdict{Permanent: true, Code: "bad_payload"}, plugin.VerdictOf(err))
		require.NotRegexp(t, `ada|bob|eve`, err.Error())
		require.NotContains(t, err.Error(), "xxx")
		require.Less(t, len(err.Error()), 200)
	}
}

// One that cannot be read can come after anything that can.
func FuzzAddressesAreCountedAsTheyAreRead(f *testing.F) {
	for _, list := range []string{
		``, ` , `, `ada@example.com`, `,ada@example.com,, bob@example.com ,`, `"Lovelace, \"Ada\"" <ada@example.com>, bob@example.com`,
		`ada@example.com (a, (b, \) "c), bob@example.com`, `"a,(b"@example.com, bob@[::1], eve@[127.0.0.1]`,
		`Crew: ada@[::1], "B, Bob" <bob@example.com>;, Nobody:;, eve@example.com`, `"ada@example.com`, `bob\`, `é <ada@example.com>,`,
	} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		count := before(list)
		require.Equal(t, count+1, before("ada@example.com,"+list))
		if parsed, err := mail.ParseAddressList(list); err == nil {
			require.Equal(t, len(parsed), count)
			require.Equal(t, count, before(list+",eve@"))
		}
	})
}

// A payload of 1 MB should cost about as much to refuse as to read: about 0.1 s at most.
func BenchmarkLongLists(b *testing.B) {
	for name, list := range map[string]string{
		"names of commas":           strings.Repeat(`"`+strings.Repeat(",", 980)+`" <a@b>,`, 1000) + "eve@",
		"many, the last unreadable": strings.Repeat("a@b,", 250_000) + "eve@",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := written{list}.parse()
				require.Error(b, err)
			}
		})
	}
	b.Run("100,000 recipients", func(b *testing.B) {
		var crowd addresses
		for i := range 100_000 {
			crowd = append(crowd, &mail.Address{Address: fmt.Sprintf("%d@example.com", i)})
		}
		for b.Loop() {
			require.Len(b, people{to: crowd}.recipients(), len(crowd))
		}
	})
}
