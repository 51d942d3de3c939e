/* The usual lines of a run, read quickly. Included once for each instruction set: GLANCE looks at 64 bytes.
 *
 * A usual line starts with the same bytes as the one before it, up to its document (so it is of the same topic); it has a document,
 * a rank, a score of digits and a point, and a tag, between them one blank of the kind that stands before the document; and it
 * ends within 128 bytes. Anything else is left to the careful reader, which also knows what to say of it.
 */

/* Add lines from `p` on, and return where the first one starts that is not usual. `first` is a line of the topic, whose document
 * starts `prefix` bytes behind it; without `keep` lines are only looked at. The last tag is left in `tag`. */
static TARGET const char *USUAL_LINES(
    Topic *t, const char *p, const char *stop, const char *first, size_t prefix, int keep, const char **tag,
    size_t *tag_size) {
    const size_t ahead = prefix + 128 + 16; /* bytes that are looked at */
    if ((size_t)(stop - first) < ahead || prefix == 0) return p;
    const uint64_t all = ~UINT64_C(0), start = load64(first), next = load64(first + 8);
    const uint64_t start_mask = prefix < 8 ? all >> (64 - 8 * prefix) : all;
    const uint64_t next_mask = prefix <= 8 ? 0 : prefix < 16 ? all >> (128 - 8 * prefix) : all;
    const char blank = first[prefix - 1];
    const char *last = NULL; /* tag */
    size_t n = t->count, room = keep ? t->room : 0, last_size = 0;
    int units = t->decimals; /* the decimals that this topic's scores have as a rule */
    while ((size_t)(stop - p) >= ahead) {
        if (((load64(p) ^ start) & start_mask) | ((load64(p + 8) ^ next) & next_mask)) break;
        if (prefix > 16 && memcmp(p + 16, first + 16, prefix - 16) != 0) break;
        const char *document = p + prefix;
        uint32_t end[4]; /* of document, rank, score and tag */
        Glance g = GLANCE(document, blank);
        uint64_t other = g.low & ~g.blank, until = other ^ (other - 1), low = g.low & until;
        if (other) {
            if ((low & (low << 1 | 1)) || __builtin_popcountll(low) != 4) break;
            for (int i = 0; i < 4; i++) {
                end[i] = (uint32_t)__builtin_ctzll(low);
                low &= low - 1;
            }
        } else {
            Glance h = GLANCE(document + 64, blank);
            uint64_t beyond = h.low & ~h.blank, more = h.low & (beyond ^ (beyond - 1));
            if (!beyond || (low & (low << 1 | 1)) || (more & (more << 1 | low >> 63))) break;
            if (__builtin_popcountll(low) + __builtin_popcountll(more) != 4) break;
            for (int i = 0; i < 4; i++) {
                end[i] = low ? (uint32_t)__builtin_ctzll(low) : 64 + (uint32_t)__builtin_ctzll(more);
                if (low)
                    low &= low - 1;
                else
                    more &= more - 1;
            }
        }
        size_t after = end[3] + 1;
        if (document[end[3]] != '\n') {
            if (document[end[3]] != '\r' || document[after++] != '\n') break;
        }
        int64_t whole;
        int decimals;
        if (!whole_number(document + end[1] + 1, end[2] - end[1] - 1, &whole, &decimals)) break;
        if (n < room && decimals == units) {
            t->document[n] = document;
            t->size[n] = end[0];
            t->hash[n] = hash(document, end[0]);
            t->score[n++].whole = whole;
        } else if (keep) {
            t->count = n;
            if (!topic_add_whole(t, document, end[0], whole, decimals)) break;
            n = t->count;
            room = t->room;
            units = t->decimals;
        }
        last = document + end[2] + 1;
        last_size = end[3] - end[2] - 1;
        p = document + after;
    }
    t->count = n;
    if (last) {
        *tag = last;
        *tag_size = last_size;
    }
    return p;
}
