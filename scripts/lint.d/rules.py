"""What scripts/lint checks: the order of the layers, the tolerated circles, the literals of the layout, the prose."""

# ---- imports --------------------------------------------------------------------------------------------------------

# From the bottom up. A module imports from its own folder and from the lines above its own, never from a later line or
# from a neighbour on the same line. A name stands for a file and for the folder of that name.
LAYERS = [
    ['ctds/error'],
    ['ctds/calendar', 'ctds/clock', 'ctds/hex', 'ctds/limits', 'ctds/measures', 'ctds/os', 'ctds/suggest', 'ctds/sync'],
    ['ctds/value'],
    ['ctds/io'],
    ['ctds/grid', 'ctds/lfs', 'ctds/progress', 'ctds/thin'],
    ['ctds/aipsio'],
    ['ctds/container'],
    ['ctds/schema'],
    ['ctds/taql'],
    ['ctds/stman'],
    ['ctds/table'],
    ['ctds/lib'],
    ['ctds-archives/sion', 'ctds-archives/vt'],
    ['ctds-archives/lib'],
    ['blosc-arrays/shuffle'],
    ['blosc-arrays/blosc'],
    ['blosc-arrays/checksum', 'blosc-arrays/dtype', 'blosc-arrays/json'],
    ['blosc-arrays/superchunk'],
    ['blosc-arrays/chunk_files'],
    ['blosc-arrays/array'],
    ['blosc-arrays/format'],
    ['blosc-arrays/arrays'],
    ['blosc-arrays/compare', 'blosc-arrays/write'],
    ['blosc-arrays/lib'],
    ['h5-read'],
    ['h5-page/error', 'h5-page/filters', 'h5-page/number'],
    ['h5-page/elements', 'h5-page/selection'],
    ['h5-page/describe'],
    ['h5-page/answer'],
    ['h5-page/lib'],
    ['h5-page/main'],
    ['msv4/dataset', 'msv4/grid', 'msv4/measures', 'msv4/options', 'msv4/tables'],
    ['msv4/directory', 'msv4/observation', 'msv4/partition'],
    ['msv4/place'],
    ['msv4'],           # a file for each dataset
    ['msv4/set'],
    ['msv4/read'],
    ['msv4/lib'],
    ['hash', 'output'],
    ['remote'],
    ['call'],
    ['h5'],
    ['container'],
    ['native'],
    ['source'],
    ['convert', 'pack', 'live', 'blz', 'lint'],
    ['documents'],
    ['internals'],
    ['lib'],
    ['h5-browse/limits', 'h5-browse/number', 'h5-browse/resolve', 'h5-browse/selection'],
    ['h5-browse/nest', 'h5-browse/table', 'h5-browse/text', 'h5-browse/tiff', 'h5-browse/types'],
    ['h5-browse/json', 'h5-browse/read'],
    ['h5-browse/data', 'h5-browse/stats'],
    ['h5-browse/entity'],
    ['h5-browse/browser'],
    ['h5-browse/lib'],
    ['ms-look/bins', 'ms-look/calendar', 'ms-look/rows', 'ms-look/subtables'],
    ['ms-look/frame'],
    ['ms-look'],        # the plots with their selections and sums
    ['ms-look/image', 'ms-look/integration', 'ms-look/rule', 'ms-look/summary'],
    ['ms-look/sample'],
    ['ms-look/rates', 'ms-look/session'],
    ['ms-look/alert', 'ms-look/groups'],
    ['ms-look/lib'],
    ['h5bridge/exit', 'h5bridge/prometheus', 'h5bridge/stderr'],
    ['h5bridge/interrupt', 'h5bridge/topics', 'h5bridge/version'],
    ['h5bridge/args'],
    ['h5bridge/report', 'h5bridge/progress'],
    ['h5bridge/batch'],
    ['h5bridge/command'],
    ['h5bridge/cli'],
    ['h5bridge/lib'],
    ['h5bridge/main'],
    ['python/error', 'python/interpreter', 'python/others'],
    ['python/keywords', 'python/call'],
    ['python/column', 'python/live', 'python/writer'],
    ['python/source'],
    ['python/msv4', 'python/outline'],
    ['python/lib'],
]

# (importing, imported, why): what the order of layers alone would allow.
FORBIDDEN = [
    ('pack', 'native', 'packing moves bytes; it knows nothing of the native layout'),
    ('pack', 'source', 'packing moves bytes; it knows nothing of values'),
    ('convert/to_hdf5', 'convert/to_table', 'the two directions share native/ and source/ only'),
    ('convert/to_hdf5', 'convert/exact', 'exact follows the conversion, not the reverse'),
    ('convert/to_table', 'convert/to_hdf5', 'the two directions share native/ and source/ only'),
    ('convert/to_table', 'convert/exact', 'restoring the original files is a path of its own'),
    ('convert/exact', 'convert/to_table', 'restoring the original files is a path of its own'),
]

# (importing, imported, why): exceptions from the order of layers.
PERMITTED = [
    ('ctds', 'ctds/lib', 'an exported macro belongs to the root'),
    ('live/finalize', 'convert', 'finalize converts a live file to one for the archive'),
]

# A storage manager, a container, a codec: a module with one of these statics. They do not import each other.
FORMAT_TYPES = ['Kind', 'Format', 'Codec']

# {module: why}: its imports of its own children do not make a circle. Every other circle is a finding.
REGISTRIES = {
    'ctds/stman': 'KINDS names every storage manager; the managers implement the traits',
    'ctds/container': 'Formats::OWN names the containers of this crate; they implement the traits',
    'container': 'FORMATS names every container; the containers implement the traits',
    'ctds/stman/aipsio': 'its KIND opens and creates; the parts use the constants of the format',
    'ctds/stman/ms_columns/sisco': 'its KIND opens and creates; the parts use the constants of the format',
    'ctds/stman/incremental': 'its KIND opens and creates; the parts share the opened file',
    'ctds/stman/standard': 'its KIND opens and creates; the parts share the opened file',
    'ctds/stman/tiled': 'its four Kinds open and create; the parts share the hypercubes',
    'container/hdf5': 'its FORMAT opens and creates; the parts use the constants of the format',
    'ctds-archives/sion': 'its FORMAT opens and creates; the parts use the constants of the format',
    'ctds/container/multifile': 'its FORMAT opens and creates; the parts use the constants of the format',
    'h5-read/chunks': 'Chunks asks the index that the layout names; the indices share its windows and entries',
    'ms-look/plots': 'Kind names every plot; the plots share the traits and the drawing',
    'ctds/io': 'the traits of positioned reading and writing, and the file that implements both',
}

# (modules, why): imports among these do not make a circle.
RECURSIONS = [
    ({'ctds/value/record', 'ctds/value/values'}, 'a record has values, and a value may be a record'),
    ({'ctds/table', 'ctds/table/column', 'ctds/table/open', 'ctds/table/open_managers', 'ctds/table/subtable', 'ctds/table/view'}, 'tables open tables'),
    ({'h5-read/group', 'h5-read/object'}, 'a group leads to objects, and an object may be a group'),
    ({'ctds/table/create', 'ctds/table/writer'}, 'a builder and what it builds'),
    ({'h5/attribute', 'h5/byte_rows', 'h5/dataset', 'h5/element', 'h5/file', 'h5/group', 'h5/live', 'h5/values'},
     'a group has datasets, a dataset attributes, an attribute references to datasets; a file becomes a live file'),
]

# ---- literals -------------------------------------------------------------------------------------------------------

# Names of the native layout (docs/reference/layout.md). Each stands in one string literal of the sources, alone or as a part of a
# path. The expression matches a part; {…} are holes of format!.
LITERALS = {
    'MAIN': r'MAIN',
    '_ctds': r'_ctds',
    'cube{n}': r'cube(\{.*\}|\d+)',
    'row_cube': r'row_cube',
    'row_index': r'row_index',
    '__defined': r'(\{.*\})?__defined',
    '__shape': r'(\{.*\})?__shape',
    '__missing': r'(column\.\{.*\})?__missing',
    '__taql': r'(\{.*\})?__taql',
    'ctds_name': r'ctds_name',
    'committed_rows': r'committed_rows',
    'source_digest': r'source_digest',
    'format_version': r'format_version',
    'table_type': r'table_type',
    'table_subtype': r'table_subtype',
    'measure_type': r'measure_type',
    'measure_ref': r'measure_ref',
    'long_name': r'long_name',
    'column.{NAME}': r'column\.(\{.*\})?',
    'strings.{NAME}': r'strings\.(\{.*\})?',
    'restore': r'restore',
    'DIMENSION_SCALE': r'DIMENSION_SCALE',
}

# {(file, literal): why}: not a name of the layout there.
OTHER_MEANINGS = {
    ('h5bridge/src/command/repair.rs', 'committed_rows'): 'a member of the --json document',
}

# ---- text -----------------------------------------------------------------------------------------------------------

# (expression, why, folders in which it is right)
FORBIDDEN_CODE = [
    (r'\bunsafe\b', 'unsafe code belongs into src/h5/sys and crates/ctds/src/os',
     ('src/h5/sys/', 'crates/ctds/src/os/')),
    (r'\.\s*unwrap\s*\(\s*\)', 'unwrap() outside tests: return an error, or expect() with the reason it cannot fail', ()),
    (r'\b(?:todo|unimplemented|dbg)!', 'unfinished code', ()),
]
FORBIDDEN_COMMENT = [(r'\b(?:TODO|FIXME|XXX)\b', 'an issue instead of a note in the code')]

# Most lines of a source, and of a function.
MAX_FILE = 900
MAX_FUNCTION = 60

# {(file, function): why}: longer functions. Each decodes one structure of a format, field after field as the bytes lie.
DECODERS = {
    ('crates/ctds/src/stman/dysco/header.rs', 'decode'): 'the header of DyscoStMan, with the records of its columns',
    ('crates/ctds/src/container/multifile/header.rs', 'read_v2'): 'the header of a MultiFile, over its chain of blocks',
    ('crates/ctds-archives/src/sion/header.rs', 'read'): 'META1 of SIONlib',
    ('crates/h5-read/src/fractal_heap.rs', 'read_header'): 'the header of a fractal heap',
}

# What documents describe is the format and the program as it is.
FORBIDDEN_DOCUMENT = [
    (r'\b[Rr]ecommended:|\bSuggested\b|\bis deferred\b|\bPriority for\b|\b[Aa] bridge (?:should|can|must)\b',
     'advice to whoever writes the program: say what the program does'),
]

# What a message needs one of.
MESSAGE_VERBS = (
    r"\b(?:is|are|was|were|be|been|has|have|had|does|do|did|can|cannot|could|must|may|need|needs|will|would"
    r"|exists?|exceeds?|exceed|contains?|ends?|ended|begins?|began|starts?|leaves?|leads?|lies?|lie|takes?|took|takes|gives?|gave"
    r"|states?|records?|says|declares?|names?|holds?|refers?|differs?|covers?|overlaps?|follows?|reaches|fits?|fills?|matches|match"
    r"|decodes?|compress(?:es)?|belongs?|comes?|came|goes|went|shows?|stores?|stands|makes?|uses?|lacks?|became|becomes?|remains?"
    r"|requires?|reads?|writes?|wrote|opens?|closed|changed|failed|fails|gets?|got|allows?|supports?|appears?|occurs?|points?"
    r"|promises?|describes?|repeats?|returns?|adds?|share|wait|want|wants|knows?|interrupted)\b")

# What h5grove, whose protocol `serve` speaks, and the operating system say in these words.
SERVER_MESSAGES = r"Unsupported |Cannot resolve|File not found|Permission denied|os error"

# {pattern: expression}: what names of tests avoid, as words.
TEST_NAMES = {
    'P1': r"^(?:test )?what(?:ever)?\b|\b(?:of|from|for|with|without|in|by|than|as) what\b",
    'P5': r"\b(?:is|are|was|were|be) (?:no (?!longer\b|more\b)\w+|none\b)",
    'P8': r"\banew\b|\bmeanwhile\b|\btoo$",
    'P9': r"\b(?:who(?:ever)?|whom|somebody|nobody|anybody|everybody|he|his)\b",
}

# How a source begins that another program writes.
GENERATED = '//! Files of the web page'

# {pattern: (expression, rule)}: counted in comments, messages and documents; scripts/lint.d/ceilings has how often each
# may occur. CONTRIBUTING.md has examples.
PROSE = {
    'P1': (r"(?:^|(?<=[.;:] ))(?:What(?:ever)?|Who(?:ever)?)\b(?! if\b)|^what(?:ever)?\b|\b(?:of|from|for|with|without|in|by|than|as) what\b",
           'a noun instead of a clause with "what" (counted in comments)'),
    'P2': (r"^(?:Of|In|To|From|With|For|By|At|On|As|Between|Within|Among|Through|Beside|Behind|Before|After)\b[^:]*$",
           'a doc comment stands alone: begin with the thing, not with a preposition (counted in doc comments)'),
    'P4': (r"\b(?:is|are|was|were|be|been) (?:not )?there\b(?! (?:a|an|are|is|any|no)\b)|\bthere (?:is|are|was|were) not?\b(?!h)",
           '"existing", "missing", "present" instead of "there"'),
    'P5': (r"\b(?:is|are|was|were|be) no (?!longer|more\b)\w+", '"is not a …", "does not contain …" instead of "is no …"'),
    'P6': (r'(?!^behind$)(?<!["`])\bbehind\b(?!["`])', '"after" for an order, "beyond" for a place'),
    'P7': (r"\bso (?:many|long|much|few)\b(?! as\b)|\blikewise\b", 'give the number a name'),
    'P8': (r"\banew\b|\bmeanwhile\b|,? too[.;:]", '"again", "concurrently", "also"'),
    'P9': (r"\b(?:whoever|somebody|nobody|anybody|everybody|whose turn)\b|\bhe\b|\bhis\b|\bwho (?:is|was|has|had|reads?|writes?|wrote|holds?|opens?|locks?|asks?|makes?|made)\b",
           'name the process: "another process", "the writer", "the reader"'),
    'P11': (r"^(?!.*(?:%s))(?!(?:.*: )?(?:found|expected)\b)(?!%s)(?!.*(?:: ?|\()\{\w*\}\)?$)" % (MESSAGE_VERBS, SERVER_MESSAGES),
            'a message has a verb: "what is wrong: found X, expected Y" (counted in messages of errors)'),
    'P15': (r"^(?i:it|they|them|he|she|those|these|who|whom|what(?:ever)?|(?:all|both|each|none|neither|one|some|most|many) of (?:it|them|these|those)"
            r"|(?:this|that) (?:is|was|has|had|does|can|may|must|will|would|could|should|makes?|takes?|gives?|needs?|keeps?|holds?|lets?|leaves?|of|for|in|on|by)"
            r"|there (?:is|are|was|were|can|may|must))\b",
            'a comment inside a function begins with a noun, not with a pronoun'),
    'P16': (r"(?<![\w`\])])\(([^()`]*[A-Za-z]{2,}[^()`]*[ -][^()`]*[A-Za-z]{2,}[^()`]*)\)",
            'the head of a file explains a term once, not each comment in parentheses (counted in comments)'),
    'P17': ('', 'the name of a test says the behaviour, without the words of P1, P5, P8 and P9 (counted in names of tests)'),
    'P18': (r'.{101}', 'lines of comments end at column 100, but for tables, drawings and examples'),
}
